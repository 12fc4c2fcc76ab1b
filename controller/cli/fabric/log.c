/* weft log: what weftd writes into its log. */
#include "controller/cli/core/private.h"

int cmd_log(struct cli *c, struct err *err)
{
	Weft__V1__LogRequest req = WEFT__V1__LOG_REQUEST__INIT;
	const Weft__V1__LogResponse *res;
	ProtobufCMessage *msg;
	struct out *o;
	int r;

	if (c->argc > 0) {
		req.levels = c->argv[0];
	}
	r = cli_unary(c, CLI_METHOD("Log"), &req.base,
		      &weft__v1__log_response__descriptor, CLI_CALL_MS, &msg,
		      err);
	if (r) {
		return r;
	}
	res = (const Weft__V1__LogResponse *)msg;
	o = out_new(c->format);
	if (o) {
		out_array(o, "levels");
		for (size_t i = 0; i < res->n_levels; i++) {
			out_object(o, NULL);
			out_str(o, "room", res->levels[i]->room);
			out_str(o, "level", res->levels[i]->level);
			out_end(o);
		}
		out_end(o);
	}
	protobuf_c_message_free_unpacked(msg, NULL);
	return cli_print(o, err);
}
