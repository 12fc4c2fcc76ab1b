/*
 * The device side of the ring register protocol (drivers/mrr_wire.h):
 * registers, a shadow and an active bank, lock states by the faults.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/emulators/emu.h"
#include "drivers/mrr_wire.h"
#include "lib/base/clk.h"

#define MAX_STEPS 65535
#define MAX_TUNES (8u << 20)
#define REVISION 1
#define AUTOSTEP_NS 1000000

struct mrr_device {
	struct emu *e;
	uint8_t *shadow, *active;	/* bytes as seen through the pages */
	size_t shadow_cap;		/* bytes ever written, rest is zero */
	uint32_t shadow_steps, shadow_bytes, shadow_crc;
	uint64_t fence, writer;
	uint32_t generation, flags, last_code;
	uint32_t active_bytes, active_crc;
	uint8_t *locks;			/* one a setting */
	uint32_t n_unlocked, first_unlocked;
	uint32_t step, step_control;
	int64_t step_ns;		/* when autostep began */
};

/* ---- locks ------------------------------------------------------------------ */

static enum mrr_lock lock_of(struct mrr_device *d, const struct light_tune *t)
{
	static const struct {
		enum fault_kind fault;
		enum mrr_lock lock;
	} map[] = {
		{ FAULT_NO_WAVE, MRR_LOCK_NO_WAVE },
		{ FAULT_NOT_IN_RANGE, MRR_LOCK_NOT_IN_RANGE },
		{ FAULT_DUPLICATE_LOCK, MRR_LOCK_DUPLICATE },
		{ FAULT_ZERO_LOCK, MRR_LOCK_ZERO },
		{ FAULT_LOL, MRR_LOCK_NO_WAVE },
	};
	struct faults *f = &d->e->faults;

	if (faults_hold(f, FAULT_INTERLOCK, NULL)) {
		return MRR_LOCK_NOT_STARTED;
	}
	for (size_t i = 0; f->n && i < sizeof(map) / sizeof(map[0]); i++) {
		if (faults_hold_place(f, map[i].fault, t->node, t->channel)) {
			d->flags |= map[i].fault == FAULT_LOL ?
				    MRR_FLAG_LOL : 0;
			return map[i].lock;
		}
	}
	return MRR_LOCK_DONE;
}

static void search_locks(struct mrr_device *d)
{
	const struct light_program *p = &d->e->mem.program;

	d->n_unlocked = 0;
	for (size_t i = 0; i < p->n; i++) {
		d->locks[i] = lock_of(d, &p->v[i]);
		if (d->locks[i] != MRR_LOCK_DONE && d->n_unlocked++ == 0) {
			d->first_unlocked = (uint32_t)i;
		}
	}
	if (faults_hold(&d->e->faults, FAULT_INTERLOCK, NULL)) {
		d->flags |= MRR_FLAG_INTERLOCK;
	}
}

/* ---- banks ------------------------------------------------------------------ */

/* Makes the active bank and the locks from e->mem. Out of memory goes dark. */
static void show_program(struct mrr_device *d)
{
	struct devmem *mem = &d->e->mem;
	size_t n = mem->program.n;

	free(d->active);
	free(d->locks);
	d->active = malloc(n ? n * MRR_TUNE_BYTES : 1);
	d->locks = malloc(n ? n : 1);
	if (!d->active || !d->locks) {
		devmem_clear(mem);
		n = 0;
	}
	for (size_t i = 0; i < n; i++) {
		mrr_put_tune(d->active + i * MRR_TUNE_BYTES,
			     &mem->program.v[i]);
	}
	d->active_bytes = (uint32_t)(n * MRR_TUNE_BYTES);
	d->active_crc = mrr_crc32(0, d->active, d->active_bytes);
	d->step = 0;
	search_locks(d);
}

static bool grow_shadow(struct mrr_device *d, size_t need)
{
	size_t cap = d->shadow_cap ? d->shadow_cap : MRR_PAGE_BYTES;
	uint8_t *bytes;

	if (need <= d->shadow_cap) {
		return true;
	}
	while (cap < need) {
		cap *= 2;
	}
	bytes = realloc(d->shadow, cap);
	if (!bytes) {
		return false;
	}
	memset(bytes + d->shadow_cap, 0, cap - d->shadow_cap);
	d->shadow = bytes;
	d->shadow_cap = cap;
	return true;
}

/* Where a page and an offset point to in a bank; false for another bank. */
static bool in_bank(enum mrr_bank bank, const struct mrr_frame *f, size_t *at)
{
	if (f->page < bank || f->page >= bank + MRR_BANK_PAGES ||
	    f->offset >= MRR_PAGE_BYTES) {
		return false;
	}
	*at = (size_t)(f->page - bank) * MRR_PAGE_BYTES + f->offset;
	return true;
}

/* ---- commit ------------------------------------------------------------------ */

/* The shadow as a program. An index of a wrong setting, or -1. */
static int64_t decode_shadow(struct mrr_device *d, struct light_program *p)
{
	const struct devmem *mem = &d->e->mem;

	for (size_t i = 0; i < p->n; i++) {
		struct light_tune *t = &p->v[i];

		mrr_get_tune(d->shadow + i * MRR_TUNE_BYTES, t);
		if (t->step >= p->steps || t->node >= mem->n_in ||
		    t->channel >= mem->n_out ||
		    t->fibre >= d->e->conf.fibres || t->mode < LIGHT_ADD ||
		    t->mode > LIGHT_ADD_DROP ||
		    (i && light_tune_cmp(&p->v[i - 1], t) >= 0)) {
			return (int64_t)i;
		}
	}
	return -1;
}

static uint32_t found_crc(const struct mrr_device *d)
{
	size_t n = d->shadow_bytes < d->shadow_cap ? d->shadow_bytes :
						     d->shadow_cap;

	return mrr_crc32(0, d->shadow, n);
}

static enum mrr_code check_commit(struct mrr_device *d, uint32_t *detail)
{
	if (faults_hold(&d->e->faults, FAULT_INTERLOCK, NULL)) {
		return MRR_INTERLOCK;
	}
	if (d->fence < d->writer) {
		return MRR_STALE_WRITER;
	}
	if (d->shadow_bytes % MRR_TUNE_BYTES || d->shadow_steps > MAX_STEPS ||
	    d->shadow_bytes / MRR_TUNE_BYTES > MAX_TUNES ||
	    d->shadow_bytes > d->shadow_cap) {
		return MRR_BAD_LENGTH;
	}
	*detail = found_crc(d);
	return *detail == d->shadow_crc ? MRR_OK : MRR_BAD_CRC;
}

static enum mrr_code commit(struct mrr_device *d, uint32_t *detail)
{
	struct light_program p = { .steps = d->shadow_steps,
				   .n = d->shadow_bytes / MRR_TUNE_BYTES };
	enum mrr_code code = check_commit(d, detail);
	int64_t wrong;

	if (code) {
		return code;
	}
	p.v = malloc(p.n ? p.n * sizeof(*p.v) : 1);
	if (!p.v) {
		return MRR_BUSY;
	}
	wrong = decode_shadow(d, &p);
	if (wrong >= 0) {
		light_program_fini(&p);
		*detail = (uint32_t)wrong;
		return MRR_BAD_PROGRAM;
	}
	if (faults_strike(&d->e->faults, FAULT_IGNORE_COMMIT, NULL)) {
		light_program_fini(&p);
		return MRR_OK;
	}
	if (p.n && faults_strike(&d->e->faults, FAULT_CORRUPT_ACTIVE, NULL)) {
		p.v[p.n / 2].mode ^= LIGHT_ADD_DROP;
	}
	light_program_fini(&d->e->mem.program);
	d->e->mem.program = p;
	d->e->mem.has_program = true;
	d->writer = d->fence;
	d->generation++;
	show_program(d);
	emu_changed(d->e);
	return MRR_OK;
}

/* ---- registers ----------------------------------------------------------------- */

static uint32_t current_step(const struct mrr_device *d)
{
	uint32_t steps = d->e->mem.program.steps;
	uint64_t gone = 0;

	if (steps == 0) {
		return 0;
	}
	if (d->step_control & MRR_AUTOSTEP) {
		gone = (uint64_t)(clk_now_ns() - d->step_ns) / AUTOSTEP_NS;
	}
	return (uint32_t)((d->step + gone) % steps);
}

static void fill_lock_registers(const struct mrr_device *d, uint8_t *r)
{
	mrr_put32(r + MRR_LOCK_TOTAL, d->active_bytes / MRR_TUNE_BYTES);
	mrr_put32(r + MRR_LOCK_FAILED, d->n_unlocked);
	if (d->n_unlocked) {
		mrr_put32(r + MRR_LOCK_INDEX, d->first_unlocked);
		memcpy(r + MRR_LOCK_TUNE, d->active + MRR_TUNE_BYTES *
		       (size_t)d->first_unlocked, MRR_TUNE_BYTES);
		mrr_put32(r + MRR_LOCK_STATE, d->locks[d->first_unlocked]);
	}
}

static void fill_registers(const struct mrr_device *d, uint8_t *r)
{
	const struct devmem *mem = &d->e->mem;

	memset(r, 0, MRR_REGISTERS);
	memcpy(r + MRR_ID, "WMRR", 4);
	mrr_put32(r + MRR_REVISION, REVISION);
	mrr_put32(r + MRR_NODES, (uint32_t)mem->n_in);
	mrr_put32(r + MRR_CHANNELS, (uint32_t)mem->n_out);
	mrr_put32(r + MRR_FIBRES, (uint32_t)d->e->conf.fibres);
	mrr_put32(r + MRR_MAX_STEPS, MAX_STEPS);
	mrr_put32(r + MRR_MAX_TUNES, MAX_TUNES);
	mrr_put32(r + MRR_MAX_WINDOW, MRR_MAX_DATA);
	memcpy(r + MRR_SERIAL, d->e->conf.name,
	       strnlen(d->e->conf.name, MRR_BOOTS - MRR_SERIAL));
	mrr_put32(r + MRR_BOOTS, (uint32_t)mem->boots);
	mrr_put32(r + MRR_GENERATION, d->generation);
	mrr_put64(r + MRR_WRITER, d->writer);
	mrr_put32(r + MRR_FLAGS, d->flags);
	mrr_put32(r + MRR_LAST_CODE, d->last_code);
	mrr_put32(r + MRR_STATUS, mem->has_program ? MRR_HAS_PROGRAM : 0);
	mrr_put32(r + MRR_SHADOW_STEPS, d->shadow_steps);
	mrr_put32(r + MRR_SHADOW_BYTES, d->shadow_bytes);
	mrr_put32(r + MRR_SHADOW_CRC, d->shadow_crc);
	mrr_put64(r + MRR_FENCE, d->fence);
	mrr_put32(r + MRR_ACTIVE_STEPS, mem->program.steps);
	mrr_put32(r + MRR_ACTIVE_BYTES, d->active_bytes);
	mrr_put32(r + MRR_ACTIVE_CRC, d->active_crc);
	mrr_put32(r + MRR_STEP, current_step(d));
	mrr_put32(r + MRR_STEP_CONTROL, d->step_control);
	fill_lock_registers(d, r);
}

static void step_control(struct mrr_device *d, uint32_t value)
{
	d->step = current_step(d) + (value & MRR_TRIGGER ? 1 : 0);
	d->step_ns = clk_now_ns();
	d->step_control = value & MRR_AUTOSTEP;
}

/* Writes the registers from offset on; all must be writable. */
static enum mrr_code write_registers(struct mrr_device *d,
				     const struct mrr_frame *f)
{
	uint8_t r[MRR_REGISTERS];
	uint32_t end = f->offset + f->len;

	if (f->len % 4 || f->offset % 4 || end > MRR_REGISTERS) {
		return MRR_BAD_LENGTH;
	}
	fill_registers(d, r);
	if (f->offset == MRR_FLAGS && f->len == 4) {
		d->flags &= ~mrr_get32(f->data);
	} else if (f->offset == MRR_STEP_CONTROL && f->len == 4) {
		step_control(d, mrr_get32(f->data));
	} else if (f->offset >= MRR_SHADOW_STEPS && end <= MRR_COMMIT) {
		memcpy(r + f->offset, f->data, f->len);
		d->shadow_steps = mrr_get32(r + MRR_SHADOW_STEPS);
		d->shadow_bytes = mrr_get32(r + MRR_SHADOW_BYTES);
		d->shadow_crc = mrr_get32(r + MRR_SHADOW_CRC);
		d->fence = mrr_get64(r + MRR_FENCE);
	} else {
		return MRR_READ_ONLY;
	}
	return MRR_OK;
}

/* ---- frames ---------------------------------------------------------------------- */

static void answer(struct emu_client *c, const struct mrr_frame *f, uint8_t op,
		   uint8_t code, const void *data, uint32_t len)
{
	const struct mrr_frame reply = {
		.op = op, .code = code, .seq = f->seq, .page = f->page,
		.offset = f->offset, .len = len, .data = data };
	struct buf b = { 0 };

	mrr_encode(&b, &reply);
	if (!b.failed) {
		emu_reply(c, b.data, b.len);
	}
	buf_fini(&b);
}

static void nack(struct emu_client *c, const struct mrr_frame *f,
		 enum mrr_code code, uint32_t detail)
{
	uint8_t data[4];

	mrr_put32(data, detail);
	answer(c, f, MRR_NACK, (uint8_t)code, data, sizeof(data));
}

static void answer_read(struct emu_client *c, struct mrr_device *d,
			const struct mrr_frame *f)
{
	uint32_t n = f->len == 4 ? mrr_get32(f->data) : 0;
	uint8_t r[MRR_REGISTERS];
	const uint8_t *from = NULL;
	size_t at, size = 0;

	if (n == 0 || n > MRR_MAX_DATA) {
		nack(c, f, MRR_BAD_LENGTH, n);
		return;
	}
	if (f->page == 0) {
		at = f->offset;
		fill_registers(d, r);
		if (at <= MRR_SHADOW_CRC_FOUND &&
		    at + n >= MRR_SHADOW_CRC_FOUND + 4) {
			mrr_put32(r + MRR_SHADOW_CRC_FOUND, found_crc(d));
		}
		from = r;
		size = sizeof(r);
	} else if (in_bank(MRR_SHADOW, f, &at)) {
		from = d->shadow;
		size = d->shadow_cap;
	} else if (in_bank(MRR_ACTIVE, f, &at)) {
		from = d->active;
		size = d->active_bytes;
	} else if (in_bank(MRR_LOCKS, f, &at)) {
		from = d->locks;
		size = d->active_bytes / MRR_TUNE_BYTES;
	}
	if (!from || at + n > size) {
		nack(c, f, MRR_BAD_ADDRESS, (uint32_t)size);
	} else {
		answer(c, f, MRR_READ_OK, 0, from + at, n);
	}
}

static enum mrr_code write_shadow(struct mrr_device *d,
				  const struct mrr_frame *f, size_t at)
{
	if (f->offset + f->len > MRR_PAGE_BYTES ||
	    at + f->len > (size_t)MAX_TUNES * MRR_TUNE_BYTES) {
		return MRR_BAD_ADDRESS;
	}
	if (!grow_shadow(d, at + f->len)) {
		return MRR_BUSY;
	}
	memcpy(d->shadow + at, f->data, f->len);
	if (f->len && faults_strike(&d->e->faults, FAULT_CORRUPT_SHADOW,
				    NULL)) {
		d->shadow[at] ^= 1;
	}
	return MRR_OK;
}

static void answer_write(struct emu_client *c, struct mrr_device *d,
			 const struct mrr_frame *f)
{
	enum emu_fate fate = EMU_DO;
	enum mrr_code code = MRR_BAD_ADDRESS;
	uint32_t detail = 0;
	size_t at;

	if (faults_strike(&d->e->faults, FAULT_NACK, NULL)) {
		code = MRR_BUSY;
	} else if (f->page == 0 && f->offset == MRR_COMMIT) {
		fate = emu_set_command(c);
		code = f->len == 4 && mrr_get32(f->data) == MRR_COMMIT_WORD ?
		       MRR_OK : MRR_BAD_LENGTH;
		if (fate != EMU_EAT && code == MRR_OK) {
			code = commit(d, &detail);
		}
	} else if (f->page == 0) {
		code = write_registers(d, f);
	} else if (in_bank(MRR_SHADOW, f, &at)) {
		code = write_shadow(d, f, at);
	} else if (f->page >= MRR_ACTIVE) {
		code = MRR_READ_ONLY;
	}
	if (fate == EMU_DO_AND_DROP) {
		emu_drop(c);
	} else if (fate == EMU_DO && code == MRR_OK) {
		answer(c, f, MRR_WRITE_OK, 0, NULL, 0);
	} else if (fate == EMU_DO) {
		nack(c, f, code, detail);
	}
}

static int64_t emu_mrr_input(struct emu_client *c, const uint8_t *data,
			     size_t len)
{
	struct mrr_device *d = emu_of(c)->device;
	int64_t n = mrr_frame_length(data, len);
	struct mrr_frame f;

	if (n <= 0) {
		return n;
	}
	d->e->n_commands++;
	if (!mrr_decode(data, (size_t)n, &f)) {
		memset(&f, 0, sizeof(f));
		f.seq = mrr_get32(data + 4);
		nack(c, &f, MRR_BAD_FRAME, 0);
	} else if (f.op == MRR_READ) {
		answer_read(c, d, &f);
	} else if (f.op == MRR_WRITE) {
		answer_write(c, d, &f);
	} else {
		nack(c, &f, MRR_BAD_FRAME, 0);
	}
	return n;
}

/* ---- as a dialect ------------------------------------------------------------------- */

static void power_up(struct mrr_device *d)
{
	d->flags = MRR_FLAG_POWERED_UP;
	d->last_code = MRR_CODE_POWERED_UP;
	d->writer = d->fence = 0;
	d->shadow_steps = d->shadow_bytes = d->shadow_crc = 0;
	d->step = d->step_control = 0;
	d->generation = 0;
}

static int emu_mrr_open(struct emu *e, struct err *err)
{
	struct mrr_device *d = calloc(1, sizeof(*d));

	if (!d) {
		return err_nomem(err);
	}
	d->e = e;
	e->device = d;
	power_up(d);
	show_program(d);
	return 0;
}

static void emu_mrr_close(struct emu *e)
{
	struct mrr_device *d = e->device;

	free(d->shadow);
	free(d->active);
	free(d->locks);
	free(d);
}

static void emu_mrr_refresh(struct emu *e, bool restarted)
{
	struct mrr_device *d = e->device;
	uint32_t step = d->step;

	if (restarted) {
		power_up(d);
		show_program(d);
	} else if (d->active_bytes != e->mem.program.n * MRR_TUNE_BYTES) {
		/* Somebody else took the program away. */
		d->generation++;
		show_program(d);
	} else {
		search_locks(d);
		d->step = step;
	}
}

const struct emu_dialect emu_mrr = {
	.name = "mrr-reg",
	.kind = DRV_RING,
	.max_input = MRR_MAX_FRAME,
	.open = emu_mrr_open,
	.close = emu_mrr_close,
	.input = emu_mrr_input,
	.refresh = emu_mrr_refresh,
};
