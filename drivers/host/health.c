/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a link is, from the best that answers: the module's own diagnostics
 * and the link state over generic netlink (ethtool), else the carrier; see
 * host.h. Bytes of modules: SFF-8472 table 9-16, SFF-8636 table 6-9, CMIS
 * page 11h.
 */
#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>
#include <math.h>
#include <netlink/errno.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <stdio.h>
#include <string.h>

#include "drivers/host/private.h"
#include "lib/base/alloc.h"

#define DATA_MAX 128

/* What was asked and came back. */
struct answer {
	bool has_link, link;
	int ext_state;		/* -1: none given */
	int len;
	uint8_t data[DATA_MAX];
	bool has_fec;
	uint64_t fec_lost;
};

const char *host_source_name(enum host_source s)
{
	static const char *const names[] = { "none", "carrier", "ethtool",
					     "module" };

	return names[s];
}

static const char *ext_state_name(int state)
{
	static const char *const names[] = {
		"autoneg", "link training failure", "link logical mismatch",
		"bad signal integrity", "no cable", "cable issue",
		"EEPROM issue", "calibration failure",
		"power budget exceeded", "overheat", "module",
	};

	if (state < 0) {
		return NULL;
	}
	return state < (int)(sizeof(names) / sizeof(names[0])) ? names[state] : "other";
}

/* The first of the counters is the total of all lanes. */
static void take_fec(struct nl_msg *msg, struct answer *out)
{
	struct nlattr *a[ETHTOOL_A_FEC_MAX + 1], *s[ETHTOOL_A_FEC_STAT_MAX + 1];
	struct nlattr *lost;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, a, ETHTOOL_A_FEC_MAX, NULL) < 0 ||
	    !a[ETHTOOL_A_FEC_STATS] || nla_parse_nested(s, ETHTOOL_A_FEC_STAT_MAX,
							a[ETHTOOL_A_FEC_STATS], NULL) < 0) {
		return;
	}
	lost = s[ETHTOOL_A_FEC_STAT_UNCORR];
	if (lost && nla_len(lost) >= (int)sizeof(out->fec_lost)) {
		memcpy(&out->fec_lost, nla_data(lost), sizeof(out->fec_lost));
		out->has_fec = true;
	}
}

static int on_reply(struct nl_msg *msg, void *arg)
{
	struct genlmsghdr *head = genlmsg_hdr(nlmsg_hdr(msg));
	struct nlattr *a[ETHTOOL_A_MODULE_EEPROM_MAX + 1];
	struct answer *out = arg;
	struct nlattr *data;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, a, ETHTOOL_A_MODULE_EEPROM_MAX, NULL) < 0) {
		return NL_OK;
	}
	if (head->cmd == ETHTOOL_MSG_LINKSTATE_GET_REPLY) {
		out->has_link = a[ETHTOOL_A_LINKSTATE_LINK] != NULL;
		out->link = out->has_link && nla_get_u8(a[ETHTOOL_A_LINKSTATE_LINK]);
		if (a[ETHTOOL_A_LINKSTATE_EXT_STATE]) {
			out->ext_state = nla_get_u8(a[ETHTOOL_A_LINKSTATE_EXT_STATE]);
		}
	}
	if (head->cmd == ETHTOOL_MSG_FEC_GET_REPLY) {
		take_fec(msg, out);
	}
	data = a[ETHTOOL_A_MODULE_EEPROM_DATA];
	if (head->cmd == ETHTOOL_MSG_MODULE_EEPROM_GET_REPLY && data) {
		out->len = nla_len(data) < DATA_MAX ? nla_len(data) : DATA_MAX;
		memcpy(out->data, nla_data(data), (size_t)out->len);
	}
	return NL_OK;
}

static int open_genl(struct host_net *net, struct err *err)
{
	int back, rc;

	if (net->genl) {
		return 0;
	}
	rc = host_enter(net, &back, err);
	if (rc) {
		return rc;
	}
	net->genl = x_have(nl_socket_alloc());
	rc = genl_connect(net->genl);
	host_leave(back);
	if (rc) {
		return host_nl_err(err, rc, net, "generic netlink");
	}
	net->ethtool = genl_ctrl_resolve(net->genl, ETHTOOL_GENL_NAME);
	return 0;
}

static int ask(struct host_net *net, struct nl_msg *msg, struct answer *out)
{
	int rc = nl_send_auto(net->genl, msg);

	if (rc >= 0) {
		rc = host_nl_receive(net->genl, on_reply, out);
	}
	/* The acknowledgement of a request that was answered. */
	if (rc >= 0) {
		rc = nl_wait_for_ack(net->genl);
	}
	return rc < 0 ? rc : 0;
}

/* What is put into a message always fits. */
static struct nl_msg *request(struct host_net *net, int ifindex, uint8_t cmd,
			      int header, uint32_t flags)
{
	struct nl_msg *msg = x_have(nlmsg_alloc());
	struct nlattr *nest;

	genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, net->ethtool, 0, NLM_F_REQUEST | NLM_F_ACK, cmd,
		    ETHTOOL_GENL_VERSION);
	nest = nla_nest_start(msg, header | NLA_F_NESTED);
	nla_put_u32(msg, ETHTOOL_A_HEADER_DEV_INDEX, (uint32_t)ifindex);
	if (flags) {
		nla_put_u32(msg, ETHTOOL_A_HEADER_FLAGS, flags);
	}
	nla_nest_end(msg, nest);
	return msg;
}

static int ask_link(struct host_net *net, int ifindex, struct answer *out)
{
	struct nl_msg *msg = request(net, ifindex, ETHTOOL_MSG_LINKSTATE_GET,
				     ETHTOOL_A_LINKSTATE_HEADER, 0);
	int rc = ask(net, msg, out);

	nlmsg_free(msg);
	return rc;
}

static int ask_module(struct host_net *net, int ifindex, uint8_t i2c, uint8_t page, uint32_t offset,
		      uint32_t length, struct answer *out)
{
	struct nl_msg *msg = request(net, ifindex, ETHTOOL_MSG_MODULE_EEPROM_GET,
				     ETHTOOL_A_MODULE_EEPROM_HEADER, 0);
	int rc;

	out->len = 0;
	nla_put_u32(msg, ETHTOOL_A_MODULE_EEPROM_OFFSET, offset);
	nla_put_u32(msg, ETHTOOL_A_MODULE_EEPROM_LENGTH, length);
	nla_put_u8(msg, ETHTOOL_A_MODULE_EEPROM_PAGE, page);
	nla_put_u8(msg, ETHTOOL_A_MODULE_EEPROM_I2C_ADDRESS, i2c);
	rc = ask(net, msg, out);
	nlmsg_free(msg);
	return rc == 0 && out->len < (int)length ? -NLE_MSG_TOOSHORT : rc;
}

/* Modules count in tenths of a microwatt. */
static int32_t milli_dbm(const uint8_t *at)
{
	unsigned int v = (unsigned int)at[0] << 8 | at[1];

	return v ? (int32_t)lrint(10000.0 * log10(v / 10000.0)) : -40000;
}

/* Where lane 1's powers are, by the module's kind (its first byte). */
static int read_power(struct host_net *net, int ifindex, struct host_health *out)
{
	static const struct {
		uint8_t first, last, i2c, page;
		uint32_t rx, tx;
	} kinds[] = {
		{ 0x03, 0x03, 0x51, 0x00, 104, 102 },	/* SFP, SFF-8472 */
		{ 0x0c, 0x0d, 0x50, 0x00, 34, 50 },	/* QSFP, QSFP+ */
		{ 0x11, 0x11, 0x50, 0x00, 34, 50 },	/* QSFP28 */
		{ 0x18, 0x19, 0x50, 0x11, 186, 154 },	/* QSFP-DD, OSFP */
		{ 0x1e, 0x1e, 0x50, 0x11, 186, 154 },	/* QSFP, CMIS */
	};
	struct answer a = { 0 };
	int rc = ask_module(net, ifindex, 0x50, 0, 0, 1, &a);
	uint8_t kind = a.data[0];

	for (size_t i = 0; rc == 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kind < kinds[i].first || kind > kinds[i].last) {
			continue;
		}
		rc = ask_module(net, ifindex, kinds[i].i2c, kinds[i].page, kinds[i].rx, 2, &a);
		if (rc == 0) {
			out->rx_mdbm = milli_dbm(a.data);
			rc = ask_module(net, ifindex, kinds[i].i2c,
					kinds[i].page, kinds[i].tx, 2, &a);
		}
		if (rc == 0) {
			out->tx_mdbm = milli_dbm(a.data);
			out->has_power = true;
		}
		return rc;
	}
	return rc ? rc : -NLE_OPNOTSUPP;
}

int host_health(struct host_net *net, const struct host_link *link,
		struct host_health *out, struct err *err)
{
	struct answer a = { .ext_state = -1 };
	int rc = open_genl(net, err);

	if (rc) {
		return rc;
	}
	memset(out, 0, sizeof(*out));
	out->source = HOST_BY_CARRIER;
	out->link = link->carrier;
	rc = net->ethtool < 0 ? net->ethtool : ask_link(net, link->ifindex, &a);
	if (rc || !a.has_link) {
		snprintf(out->why, sizeof(out->why), "ethtool: %s",
			 rc ? nl_geterror(rc) : "no link state");
		return 0;
	}
	out->source = HOST_BY_ETHTOOL;
	out->link = a.link;
	out->ext_state = ext_state_name(a.ext_state);
	rc = read_power(net, link->ifindex, out);
	if (rc) {
		snprintf(out->why, sizeof(out->why), "module: %s", nl_geterror(rc));
	} else {
		out->source = HOST_BY_MODULE;
	}
	return 0;
}

int host_fec_lost(struct host_net *net, const struct host_link *link, uint64_t *lost)
{
	struct answer a = { .ext_state = -1 };
	struct nl_msg *msg = NULL;
	int rc = open_genl(net, NULL);

	*lost = 0;
	if (rc == 0 && net->ethtool >= 0) {
		msg = request(net, link->ifindex, ETHTOOL_MSG_FEC_GET,
			      ETHTOOL_A_FEC_HEADER, ETHTOOL_FLAG_STATS);
	}
	rc = msg ? ask(net, msg, &a) : WEFT_EUNSUPPORTED;
	nlmsg_free(msg);
	*lost = a.fec_lost;
	return rc == 0 && a.has_fec ? 0 : WEFT_EUNSUPPORTED;
}
