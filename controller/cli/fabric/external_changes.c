/* weft external-changes: changes of light that weft did not make. */
#include "controller/cli/core/private.h"

int cmd_external_changes(struct cli *c, struct err *err)
{
	Weft__V1__ExternalChangesRequest req = WEFT__V1__EXTERNAL_CHANGES_REQUEST__INIT;
	const Weft__V1__ExternalChangesResponse *res;
	ProtobufCMessage *msg = NULL;
	int64_t limit = 100;
	struct out *o;
	int r = cli_opt_int(c, "limit", 1, 5000, &limit, err);

	req.limit = (int32_t)limit;
	req.device = c->argc ? c->argv[0] : (char *)"";
	req.open = cli_has(c, "open");
	if (r || (r = cli_unary(c, CLI_METHOD("ExternalChanges"), &req.base,
				&weft__v1__external_changes_response__descriptor,
				CLI_CALL_MS, &msg, err))) {
		return r;
	}
	res = (const Weft__V1__ExternalChangesResponse *)msg;
	o = out_new(c->format);
	if (o) {
		wire_out_foreign(o, c->format, "foreign", res->changes,
				 res->n_changes);
	}
	r = cli_print(o, err);
	rpc_free_message(msg);
	return r;
}
