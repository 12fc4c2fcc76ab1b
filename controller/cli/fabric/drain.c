/* weft drain, undrain, freeze, unfreeze: what gets no new light. */
#include "controller/cli/core/private.h"

static int call(struct cli *c, const char *method, const char *what,
		const char *reason, struct err *err)
{
	Weft__V1__HoldRequest req = WEFT__V1__HOLD_REQUEST__INIT;
	const Weft__V1__HoldResponse *res;
	ProtobufCMessage *msg;
	struct out *o;
	int r;

	req.target = (char *)what;
	req.reason = (char *)(reason ? reason : "");
	r = cli_unary(c, method, &req.base,
		      &weft__v1__hold_response__descriptor, CLI_CALL_MS, &msg,
		      err);
	if (r) {
		return r;
	}
	res = (const Weft__V1__HoldResponse *)msg;
	o = out_new(c->format);
	if (o) {
		wire_out_holds(o, res->holds, res->n_holds);
	}
	protobuf_c_message_free_unpacked(msg, NULL);
	return cli_print(o, err);
}

int cmd_drain(struct cli *c, struct err *err)
{
	return call(c, CLI_METHOD("Drain"), c->argv[0], cli_opt(c, "comment"),
		    err);
}

int cmd_undrain(struct cli *c, struct err *err)
{
	return call(c, CLI_METHOD("Undrain"), c->argv[0], NULL, err);
}

int cmd_freeze(struct cli *c, struct err *err)
{
	return call(c, CLI_METHOD("Freeze"), "", cli_opt(c, "comment"), err);
}

int cmd_unfreeze(struct cli *c, struct err *err)
{
	return call(c, CLI_METHOD("Unfreeze"), "", NULL, err);
}
