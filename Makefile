# weft. The two commands a new user needs: `make demo` and `make check`.
#
# BUILD  folder for everything that is generated (default: build)
# MODE   release | asan | tsan    (check uses asan, and tsan for threads)

BUILD ?= build
MODE ?= release
B := $(BUILD)/$(MODE)
GEN := $(BUILD)/gen
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
DESTDIR ?=
MAKEFLAGS += --no-print-directory
# V=1 shows whole commands.
Q := $(if $(V),,@)
say = $(if $(V),@:,@echo "  $(1)" $(patsubst $(BUILD)/%,%,$@))

PACKAGES := gcc libc6-dev make pkg-config clang libclang-rt-14-dev \
	libnl-route-3-dev libnl-genl-3-dev \
	liblpsolve55-dev libcolamd2 libsuitesparse-dev libyaml-dev \
	libprotobuf-c-dev protobuf-c-compiler protobuf-compiler libuv1-dev \
	libnghttp2-dev libmicrohttpd-dev libssl-dev libsystemd-dev libsqlite3-dev libnauty2-dev libgmp-dev \
	libjansson-dev libcmocka-dev mandoc sqlite3 jq procps \
	netcat-openbsd openssl curl iproute2 python3-grpcio python3-protobuf python3-yaml
DEB_PACKAGES := build-essential debhelper dpkg-dev
# For tests/integration/page.sh, which is skipped without them.
BROWSER := chromium chromium-driver

# ---- rooms -----------------------------------------------------------------
# A room is a folder and an archive. DEPS_x: the rooms that x may include.
# tests/lint/check-deps reads these same lines and refuses any other arrow.

ROOMS := base lp rpc http proto light host topology collective rwa optree drivers \
	emulators model plan wire page store dispatch apply testbed daemon cli

DIR_base := lib/base
DIR_lp := lib/lp
DIR_rpc := lib/rpc
DIR_http := lib/http
DIR_proto := $(GEN)/proto
DIR_light := drivers/light
DIR_host := drivers/host
DIR_topology := topology
DIR_collective := collective
DIR_rwa := rwa
DIR_optree := optree
DIR_drivers := drivers
DIR_emulators := drivers/emulators
DIR_model := controller/model
DIR_plan := controller/plan
DIR_wire := controller/wire
DIR_page := controller/page
DIR_store := controller/store
DIR_dispatch := controller/dispatch
DIR_apply := controller/apply
DIR_testbed := controller/testbed
DIR_daemon := controller/daemon
DIR_cli := controller/cli

DEPS_base :=
DEPS_lp := base
DEPS_rpc := base
DEPS_http := base
DEPS_proto :=
DEPS_light := base
DEPS_host := base
DEPS_topology := base lp
DEPS_collective := base lp topology proto rpc
DEPS_rwa := base lp topology
DEPS_optree := base topology collective rwa
DEPS_drivers := base light host
DEPS_emulators := base light drivers
DEPS_model := base topology collective rwa light
DEPS_plan := base lp topology collective rwa optree model light
DEPS_wire := base light collective model plan dispatch proto
DEPS_page := base model plan light
DEPS_store := base model light
DEPS_dispatch := base model light drivers plan
DEPS_apply := base model light drivers plan store dispatch
DEPS_testbed := base topology collective rwa optree model light host drivers plan dispatch
DEPS_daemon := base host model light drivers plan wire page store dispatch apply rpc http proto collective
DEPS_cli := base lp topology collective rwa optree model light host drivers plan wire dispatch testbed rpc proto

# Archives in link order: a room before the rooms it uses.
LINK_ORDER := cli testbed daemon apply store wire dispatch page plan model emulators drivers optree \
	collective rwa topology lp rpc http proto light host base
closure = $(sort $(1) $(foreach r,$(1),$(foreach d,$(DEPS_$(r)),\
	$(call closure,$(d)))))
archives = $(foreach r,$(LINK_ORDER),$(if $(filter $(r),\
	$(call closure,$(1))),$(B)/lib$(r).a))

# ---- compilers -------------------------------------------------------------

ifeq ($(origin CC),default)
CC := gcc
endif
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wvla -Werror
# Texts for people are cut on purpose where they do not fit.
WARN += $(if $(findstring clang,$(CC)),,-Wno-format-truncation)
CPPFLAGS += -I. -I$(GEN)/proto -isystem /usr/include/libnl3 -D_GNU_SOURCE -MMD -MP
CFLAGS_release := -O2 -g -fstack-protector-strong
CFLAGS_asan := -O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer \
	-fno-sanitize-recover=all
CFLAGS_tsan := -O1 -g -fsanitize=thread
CFLAGS_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined
ALL_CFLAGS = -std=c11 -fPIE $(WARN) $(CFLAGS_$(MODE)) $(CFLAGS)
LIBS := -l:liblpsolve55_pic.a -lcolamd -lprotobuf-c -lnghttp2 -lmicrohttpd -lssl -lcrypto -lsystemd \
	-lnl-route-3 -lnl-genl-3 -lnl-3 -luv -lsqlite3 -lyaml -ljansson -lnauty -lgmp -lpthread -ldl -lm
LDFLAGS_all = -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(CFLAGS_$(MODE)) \
	$(LDFLAGS)

# ---- generated code --------------------------------------------------------

# Services and their messages: reflection hands these out.
PUBLIC_PROTOS := $(wildcard proto/weft/v1/*.proto proto/grpc/*/*/*.proto)
PROTOS := $(PUBLIC_PROTOS) $(wildcard proto/weft/meta/*.proto)
PB_C := $(patsubst proto/%.proto,$(GEN)/proto/%.pb-c.c,$(PROTOS))
PB_H := $(PB_C:.c=.h)

$(GEN)/proto/%.pb-c.c $(GEN)/proto/%.pb-c.h: proto/%.proto
	@mkdir -p $(GEN)/proto
	$(Q)protoc-c -Iproto --c_out=$(GEN)/proto $<

# The compiled public files as bytes in C.
FILES_BIN := $(GEN)/proto/weft/meta/files.bin
FILES_C := $(GEN)/proto/weft/meta/bytes.c

$(FILES_BIN): $(PUBLIC_PROTOS)
	@mkdir -p $(@D)
	$(Q)protoc -Iproto --include_imports --descriptor_set_out=$@ $(PUBLIC_PROTOS)

$(FILES_C): $(FILES_BIN)
	$(Q){ printf '#include <stddef.h>\n\nconst unsigned char weft_files[] = {\n'; \
		od -An -v -tu1 $< | sed 's/\([0-9][0-9]*\)/\1,/g'; \
		printf '};\nconst size_t weft_files_len = sizeof(weft_files);\n'; } >$@

# The files of the page that weftd serves, likewise.
WEB := $(sort $(wildcard controller/page/web/*))
WEB_C := $(GEN)/page/web.c

$(WEB_C): controller/page/embed $(WEB)
	@mkdir -p $(@D)
	$(Q)controller/page/embed $(WEB) >$@.tmp && mv $@.tmp $@

.SECONDARY: $(PB_C) $(PB_H) $(FILES_BIN) $(FILES_C) $(WEB_C)

# ---- room archives ---------------------------------------------------------

# Every C file of a folder except a program's main.c.
sources = $(filter-out %/main.c,$(wildcard $(DIR_$(1))/*.c))
objects = $(patsubst %.c,$(B)/obj/%.o,$(1))

define room_rules
OBJ_$(1) := $(if $(filter proto,$(1)),\
	$(patsubst $(GEN)/%.c,$(B)/obj/gen/%.o,$(PB_C) $(FILES_C)),\
	$(call objects,$(call sources,$(1)))) \
	$(if $(filter page,$(1)),$(B)/obj/gen/page/web.o)
$(B)/lib$(1).a: $$(OBJ_$(1))
	@rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(eval $(call room_rules,$(r))))

$(B)/obj/gen/%.o: $(GEN)/%.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) -std=c11 -fPIE $(CFLAGS_$(MODE)) $(CFLAGS) -c $< -o $@

$(B)/obj/%.o: %.c | $(PB_H)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c $< -o $@

# ---- programs --------------------------------------------------------------

PROGRAMS := $(B)/weft $(B)/weftd $(B)/weft-emulator
MAIN_weft := controller/cli/main.c
MAIN_weftd := controller/daemon/main.c
MAIN_weft-emulator := drivers/emulators/main.c
ROOM_weft := cli
ROOM_weftd := daemon
ROOM_weft-emulator := emulators

define program_rules
$(B)/$(1): $(call objects,$(MAIN_$(1))) $(call archives,$(ROOM_$(1)))
	$$(call say,LD)
	$$(Q)$$(CC) $$(LDFLAGS_all) $$^ $$(LIBS) -o $$@
endef
$(foreach p,weft weftd weft-emulator,$(eval $(call program_rules,$(p))))

# ---- tests -----------------------------------------------------------------
# tests/unit/ROOM/test_*.c is one cmocka program each, linked with ROOM and
# what ROOM may include (drivers are tested against the emulators).

UNIT := $(wildcard tests/unit/*/test_*.c)
UNIT_BIN := $(patsubst %.c,$(B)/%,$(UNIT))
test_rooms = $(if $(filter drivers,$(1)),drivers emulators,$(1))
room_of = $(word 3,$(subst /, ,$(1)))

define unit_rules
$(B)/$(patsubst %.c,%,$(1)): $(call objects,$(1)) \
		$(call archives,$(call test_rooms,$(call room_of,$(1))))
	@mkdir -p $$(@D)
	$$(call say,LD)
	$$(Q)$$(CC) $$(LDFLAGS_all) $$^ $$(LIBS) -lcmocka -o $$@
endef
$(foreach t,$(UNIT),$(eval $(call unit_rules,$(t))))

# tests/fuzz/fuzz_ROOM_what.c: a libFuzzer target; in check its corpus
# tests/fuzz/corpus/ROOM_what is replayed by tests/fuzz/replay.c.
FUZZ := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_BIN := $(patsubst %.c,$(B)/%,$(FUZZ))
fuzz_room = $(word 2,$(subst _, ,$(notdir $(1))))
FUZZ_MAIN = $(if $(filter fuzz,$(MODE)),,$(B)/obj/tests/fuzz/replay.o)

define fuzz_rules
$(B)/$(patsubst %.c,%,$(1)): $(call objects,$(1)) $(FUZZ_MAIN) \
		$(call archives,$(call fuzz_room,$(1)))
	@mkdir -p $$(@D)
	$$(call say,LD)
	$$(Q)$$(CC) $$(LDFLAGS_all) $(if $(filter fuzz,$(MODE)),-fsanitize=fuzzer) \
		$$^ $$(LIBS) -o $$@
endef
$(foreach t,$(FUZZ),$(eval $(call fuzz_rules,$(t))))

# Preloaded by tests of the store; always plain shared objects.
SHIMS := $(patsubst %,$(BUILD)/release/tests/fault/%.so,crash_at_sync full_disk)
$(BUILD)/release/tests/fault/%.so: tests/fault/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -shared \
		-fPIC $< -ldl -o $@

BENCH := $(wildcard tests/bench/bench_*.c)
BENCH_BIN := $(patsubst %.c,$(B)/%,$(BENCH))
define bench_rules
$(B)/$(patsubst %.c,%,$(1)): $(call objects,$(1)) \
		$(call archives,daemon cli emulators)
	@mkdir -p $$(@D)
	$$(call say,LD)
	$$(Q)$$(CC) $$(LDFLAGS_all) $$^ $$(LIBS) -o $$@
endef
$(foreach t,$(BENCH),$(eval $(call bench_rules,$(t))))

# ---- targets ---------------------------------------------------------------

.PHONY: all shims deps browser demo check bench lint check-deps fuzz soak install deb clean help
.DEFAULT_GOAL := all

help:
	@echo "make demo        plan, apply and verify two jobs on emulated devices"
	@echo "make check       all tests (installs what is missing)"
	@echo "make all         build/release/{weft,weftd,weft-emulator}"
	@echo "make bench lint check-deps fuzz soak install deb clean deps"
	@echo "make test-ROOM   unit tests of one room: $(ROOMS)"

all: $(PROGRAMS)

deps:
	@tests/deps $(PACKAGES)

demo: deps
	@$(MAKE) -j2 all
	@B=$(B) configs/demo/run

browser:
	@tests/deps $(BROWSER) || echo "no browser: its tests are skipped" >&2

check: deps browser
	@$(MAKE) check-builds
	@BUILD=$(BUILD) TSAN_ROOMS="$(TSAN_ROOMS)" \
		TSAN_TESTS="$(TSAN_TESTS)" tests/run

# Rooms with threads: their unit tests also run under TSan.
TSAN_ROOMS := daemon rpc
# And of rooms that hardly have any, the tests that start some.
TSAN_TESTS := base/test_parallel collective/test_find rwa/test_portfolio

check-builds:
	@$(MAKE) -j2 MODE=asan programs-and-tests
	@$(MAKE) -j2 MODE=release all shims
	@$(MAKE) -j2 MODE=tsan tsan-tests

shims: $(SHIMS)

programs-and-tests: $(PROGRAMS) $(UNIT_BIN) $(FUZZ_BIN)

tsan-tests: $(foreach r,$(TSAN_ROOMS),$(filter $(B)/tests/unit/$(r)/%,$(UNIT_BIN))) \
	$(TSAN_TESTS:%=$(B)/tests/unit/%)

# One room's unit tests, in asan unless MODE is given on the command line.
test-%:
	@$(MAKE) MODE=$(if $(filter command%,$(origin MODE)),$(MODE),asan) \
		run-unit-$*

run-unit-%:
	@$(MAKE) $(filter $(B)/tests/unit/$*/%,$(UNIT_BIN))
	@for t in $(filter $(B)/tests/unit/$*/%,$(UNIT_BIN)); do \
		echo "== $$t"; $$t || exit 1; done

bench: deps
	@$(MAKE) -j2 bench-build
	@BUILD=$(BUILD) B=$(B) tests/bench/run

bench-build: $(PROGRAMS) $(BENCH_BIN)

lint: check-deps
	@tests/lint/functions
	@tests/lint/contracts
	@tests/lint/callers
	@tests/lint/logs
	@tests/lint/checklist
	@tests/lint/man
	@$(MAKE) -j2 BUILD=$(BUILD) MODE=release CC=clang B=$(BUILD)/clang all

check-deps:
	@tests/lint/check-deps

fuzz:
	@$(MAKE) MODE=fuzz CC=clang fuzz-build
	@B=$(BUILD)/fuzz tests/fuzz/run

fuzz-build: $(FUZZ_BIN)

soak: deps browser
	@$(MAKE) check-builds
	@BUILD=$(BUILD) TSAN_ROOMS="$(TSAN_ROOMS)" \
		TSAN_TESTS="$(TSAN_TESTS)" tests/run --soak

MAN1 := $(wildcard docs/man/*.1)
MAN5 := $(wildcard docs/man/*.5)
MAN8 := $(wildcard docs/man/*.8)

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/sbin \
		$(DESTDIR)$(PREFIX)/share/man/man1 \
		$(DESTDIR)$(PREFIX)/share/man/man5 \
		$(DESTDIR)$(PREFIX)/share/man/man8 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions \
		$(DESTDIR)$(UNITDIR)
	install -m 644 configs/completion/weft.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/weft
	install -d $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions
	install -m 644 configs/completion/_weft \
		$(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/_weft
	sed 's|/usr/local|$(PREFIX)|; s|/etc|$(SYSCONFDIR)|' \
		configs/systemd/weftd.service \
		>$(DESTDIR)$(UNITDIR)/weftd.service
	install -D -m 644 configs/systemd/weftd.default \
		$(DESTDIR)$(SYSCONFDIR)/default/weftd
	install -m 755 $(B)/weft $(B)/weft-emulator $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(B)/weftd $(DESTDIR)$(PREFIX)/sbin
	install -m 644 $(MAN1) $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 $(MAN5) $(DESTDIR)$(PREFIX)/share/man/man5
	install -m 644 $(MAN8) $(DESTDIR)$(PREFIX)/share/man/man8

# A Debian package from the release build, build/weft_*.deb. debhelper wants
# its files in debian/: it gets a folder that shows the tree beside them.
DEB := $(BUILD)/deb/weft

deb:
	@tests/deps $(PACKAGES) $(DEB_PACKAGES)
	@$(MAKE) -j2 MODE=release all
	@rm -rf $(BUILD)/deb && mkdir -p $(DEB)
	@ln -s $(CURDIR)/* $(DEB) && cp -r configs/debian $(DEB)
	$(Q)cd $(DEB) && BUILD=$(abspath $(BUILD)) dpkg-buildpackage -b -us -uc \
		>$(abspath $(BUILD))/deb/log 2>&1 || \
		{ tail -n 30 $(abspath $(BUILD))/deb/log >&2; exit 1; }
	@mv $(BUILD)/deb/weft_*.deb $(BUILD) && ls $(BUILD)/weft_*.deb

clean:
	rm -rf $(BUILD)

-include $(shell test -d $(B)/obj && find $(B)/obj -name '*.d')
