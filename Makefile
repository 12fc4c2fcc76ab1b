# SPDX-License-Identifier: Apache-2.0
# weft. The two commands a new user needs: `make demo` and `make check`.
#
# BUILD  folder for everything that is generated (default: build)
# MODE   release | small | asan | tsan    (check uses asan, and tsan for threads)
# WITHOUT, TLS=no, STATIC=yes: of MODE=small, what it leaves out and how it is linked; see FEATURES
# CROSS  another machine's name, as aarch64-linux-gnu: deps and all are for it, in BUILD/CROSS

BUILD ?= build
MODE ?= release
# RELEASE+COMMITS.gHASH, and when that was committed: of git or of a tarball. Asked once.
RELEASE := 0.1.0
ifndef WEFT_VERSION
export WEFT_VERSION := $(shell configs/release/version $(RELEASE))
endif
VERSION := $(firstword $(WEFT_VERSION))
CROSS ?=
B := $(BUILD)/$(if $(CROSS),$(CROSS)/)$(MODE)
GEN := $(BUILD)/gen
# The libraries of another machine, unpacked from Debian's packages; empty: this machine's.
SYSROOT := $(if $(CROSS),$(abspath $(BUILD))/$(CROSS)/sysroot)
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
	libnghttp2-dev libmicrohttpd-dev libssh2-1-dev libssl-dev nettle-dev libsqlite3-dev libnauty2-dev \
	libgmp-dev libjansson-dev libcurl4-openssl-dev libopenmpi-dev openmpi-bin gfortran libcmocka-dev mandoc sqlite3 jq procps \
	netcat-openbsd openssl curl iproute2 python3-grpcio python3-protobuf python3-yaml prometheus \
	etcd-server etcd-client
# With CROSS: what runs here comes from this machine's packages, what is linked from the other's.
CROSS_TOOLS = make pkg-config protobuf-c-compiler protobuf-compiler dpkg-dev qemu-user \
	gcc-$(subst _,-,$(CROSS))
CROSS_LIBRARIES := $(filter-out libclang%,$(filter lib% nettle%,$(PACKAGES)))
DEB_PACKAGES := build-essential debhelper dpkg-dev
# For tests/integration/slurm.sh.
SLURM := slurmctld slurmd slurm-client munge
# For those of SSH.
SSH := openssh-server openssh-client
# For tests/integration/webui.sh, which is skipped without them.
BROWSER := chromium chromium-driver

# For tests/integration/simgrid.sh, likewise.
SIMGRID := libsimgrid-dev g++

# ---- rooms -----------------------------------------------------------------
# A room is a folder and an archive. ROOMS is ordered from the ground up: a
# room may include only rooms before it, those of its DEPS line.
# tests/lint/check-deps reads these same lines and refuses any other arrow.

ROOMS := base digest output conf lp graph proto coroutine rpc http etcd optics host topology \
	bound schedule embedding torus bfb flow tree cost make routing finder workload rank mpi preload launch lower msccl mscclpp ring mesh reconfigure optree \
	drv_core scpi restconf tl1 sonic robot mrr linux sim drivers emulators \
	model import plan dry_run proto_convert webui store apply testbed d_core d_hosts d_ha d_change d_joint d_jobs d_views daemon cli small

DIR_base := lib/base
DIR_digest := lib/digest
DIR_output := lib/output
DIR_conf := lib/conf
DIR_lp := lib/lp
DIR_graph := lib/graph
DIR_rpc := lib/rpc
DIR_http := lib/http
DIR_coroutine := lib/coroutine
DIR_etcd := lib/etcd
DIR_proto := $(GEN)/proto
DIR_optics := drivers/optics
DIR_host := drivers/host
DIR_topology := topology
DIR_bound := collective/bound
DIR_schedule := collective/schedule
DIR_embedding := collective/embedding
DIR_torus := collective/torus
DIR_bfb := collective/bfb
DIR_flow := collective/flow
DIR_tree := collective/tree
DIR_cost := collective/cost
DIR_make := collective/make
DIR_routing := collective/routing
DIR_finder := collective/finder
DIR_workload := collective/workload
DIR_rank := runtime/rank
DIR_mpi := runtime/mpi
DIR_preload := runtime/preload
DIR_launch := runtime/launch
DIR_lower := runtime/lower
DIR_msccl := runtime/msccl
DIR_mscclpp := runtime/mscclpp
DIR_ring := rwa/ring
DIR_mesh := rwa/mesh
DIR_reconfigure := rwa/reconfigure
DIR_optree := optree
DIR_drv_core := drivers/core
DIR_scpi := drivers/scpi
DIR_restconf := drivers/restconf
DIR_tl1 := drivers/tl1
DIR_sonic := drivers/sonic
DIR_robot := drivers/robot
DIR_mrr := drivers/mrr
DIR_linux := drivers/linux
DIR_sim := drivers/sim
DIR_drivers := drivers
DIR_emulators := drivers/emulators
DIR_model := controller/model
DIR_import := controller/import
DIR_plan := controller/plan
DIR_dry_run := controller/dry_run
DIR_proto_convert := controller/proto_convert
DIR_webui := controller/webui
DIR_store := controller/store
DIR_apply := controller/apply
DIR_testbed := controller/testbed
DIR_d_core := controller/daemon/core
DIR_d_hosts := controller/daemon/hosts
DIR_d_ha := controller/daemon/ha
DIR_d_change := controller/daemon/change
DIR_d_joint := controller/daemon/joint
DIR_d_jobs := controller/daemon/jobs
DIR_d_views := controller/daemon/views
DIR_daemon := controller/daemon
DIR_cli := controller/cli
DIR_small := controller/small

# Rooms of several folders.
PARTS_emulators := core tl1 scpi restconf sonic robot mrr
PARTS_cli := core schedules fabric lab
PARTS_optree := baselines broadcast grouped spread
PARTS_mesh := shared
PARTS_apply := phases
PARTS_base := number
PARTS_topology := families symmetry picture
PARTS_plan := rings switches
PARTS_store := rows
PARTS_schedule := simulation
PARTS_tree := pack stagger

DEPS_base :=
DEPS_digest :=
DEPS_output := base
DEPS_conf := base
DEPS_lp := base
DEPS_graph := base
DEPS_coroutine := base
DEPS_rpc := base proto coroutine
DEPS_http := base
DEPS_etcd := base proto rpc coroutine
DEPS_proto :=
DEPS_optics := base digest
DEPS_host := base
DEPS_topology := base output graph
DEPS_bound :=
DEPS_schedule := base graph output rpc proto topology bound
DEPS_embedding := base topology schedule
DEPS_torus := base topology schedule embedding
DEPS_bfb := base graph lp topology schedule
DEPS_flow := base graph lp topology schedule
DEPS_tree := base graph topology schedule
DEPS_cost := base graph lp topology schedule tree
DEPS_make := base topology schedule embedding torus bfb flow tree cost
DEPS_routing := base rpc proto schedule flow
DEPS_finder := base topology schedule bfb flow make
DEPS_workload := base output conf topology schedule embedding bfb flow make finder
DEPS_rank := base topology schedule
DEPS_mpi := base output topology schedule rank
DEPS_preload := base conf topology schedule rank mpi
DEPS_launch := base
DEPS_lower := base proto topology schedule
DEPS_msccl := base schedule lower
DEPS_mscclpp := base schedule lower
DEPS_ring := base lp
DEPS_mesh := base output conf graph lp ring
DEPS_reconfigure := base graph mesh
DEPS_optree := base output topology schedule ring
DEPS_drv_core := base optics
DEPS_scpi := base drv_core
DEPS_restconf := base drv_core scpi
DEPS_tl1 := base drv_core scpi
DEPS_sonic := base drv_core
DEPS_robot := base drv_core
DEPS_mrr := base optics drv_core
DEPS_linux := base optics host drv_core
DEPS_sim := base drv_core
DEPS_drivers := base drv_core scpi restconf tl1 sonic robot mrr linux sim
DEPS_emulators := base optics drv_core scpi restconf tl1 sonic robot mrr
DEPS_model := base digest conf optics topology schedule make workload ring
DEPS_import := base output conf proto schedule workload model
DEPS_plan := base digest output graph lp optics topology schedule embedding bfb flow make finder workload ring mesh optree model
DEPS_dry_run := base drv_core drivers model plan
DEPS_proto_convert := base output optics proto schedule model plan dry_run
DEPS_webui := base output topology optics schedule model plan
DEPS_store := base digest output conf optics model
DEPS_apply := base drv_core drivers model plan store dry_run
DEPS_testbed := base schedule launch host optics drv_core drivers linux model plan dry_run
DEPS_d_core := base digest output rpc proto optics model plan proto_convert webui store apply
DEPS_d_hosts := base rpc proto host optics model plan proto_convert store apply d_core
DEPS_d_ha := base digest coroutine rpc etcd store apply d_core
DEPS_d_change := base rpc proto optics model plan proto_convert store apply d_core d_hosts
DEPS_d_joint := base coroutine rpc etcd proto optics model plan store apply d_core d_hosts d_ha d_change
DEPS_d_jobs := base output rpc proto schedule model plan proto_convert store apply d_core d_change
DEPS_d_views := base output rpc http proto optics schedule model plan proto_convert webui store apply d_core d_hosts d_ha d_change d_joint d_jobs
DEPS_daemon := base rpc proto model plan store dry_run apply d_core d_hosts d_ha d_change d_joint d_jobs d_views
DEPS_cli := base output conf lp rpc proto topology schedule embedding torus bfb flow tree cost make routing finder workload launch lower msccl mscclpp ring mesh reconfigure optree drv_core host model import plan store proto_convert webui dry_run testbed
DEPS_small := base daemon cli

# CLOSURE_x: x and all that it may reach, made once a room.
$(foreach r,$(ROOMS),$(eval CLOSURE_$(r) := $(sort $(r) $(foreach d,$(DEPS_$(r)),$(CLOSURE_$(d))))))
# ---- features --------------------------------------------------------------
# What MODE=small may leave out: files, in whose place those of the same name in a folder absent/
# beside them stand, and NEEDS: what it cannot be without. In an order that NEEDS looks back only.

FEATURES := lp rings flow trunks finder schedules lab http page tls ssh restconf
# Linear programs, with the schedules and assignments that are made by them.
FILES_lp := $(wildcard lib/lp/*.c collective/cost/*.c collective/bfb/late.c collective/bfb/late_*.c) \
	controller/plan/switches/switch_assignment.c
FILES_rings := $(wildcard optree/*.c optree/*/*.c rwa/ring/*.c)
FILES_flow := $(wildcard collective/flow/*.c)
FILES_trunks := $(wildcard rwa/mesh/*.c rwa/mesh/*/*.c controller/plan/switches/trunk*.c)
FILES_finder := $(wildcard collective/finder/*.c) \
	$(filter-out %/value.c %/groups.c %/server.c,$(wildcard collective/workload/*.c))
FILES_schedules := $(wildcard controller/cli/schedules/*.c)
FILES_lab := $(wildcard controller/cli/lab/*.c)
FILES_http := lib/http/http.c lib/http/user.c
FILES_page := $(wildcard controller/webui/*.c) $(addprefix controller/daemon/views/,webui.c page_history.c)
FILES_tls := lib/rpc/tls.c
FILES_ssh := drivers/core/ssh.c drivers/core/known_hosts.c
FILES_restconf := $(wildcard drivers/restconf/*.c)
NEEDS_rings := lp
NEEDS_flow := lp
NEEDS_trunks := lp
NEEDS_finder := flow
NEEDS_schedules := rings finder trunks
NEEDS_lab := schedules
NEEDS_page := http
NEEDS_ssh := tls
NEEDS_restconf := tls
WITHOUT_TLS_no := tls
# Of libcurl and libmicrohttpd there are no archives that can be linked.
WITHOUT_STATIC_yes := http restconf

# LINKS=yes: the same files in another mode, in a folder of its own: that it can be linked.
ifneq ($(filter small,$(MODE))$(LINKS),)
WITHOUT ?= flow trunks lab page
ABSENT :=
$(foreach f,$(FEATURES),$(eval ABSENT += $(if \
	$(filter $(f),$(WITHOUT) $(WITHOUT_TLS_$(TLS)) $(WITHOUT_STATIC_$(STATIC)))$(filter \
	$(NEEDS_$(f)),$(ABSENT)),$(f))))
ABSENT := $(strip $(ABSENT))
ifneq ($(filter-out $(FEATURES),$(WITHOUT)),)
$(error WITHOUT: $(filter-out $(FEATURES),$(WITHOUT)): there are $(FEATURES))
endif
endif
P := $(B)$(if $(LINKS),/links)
LEFT_OUT := $(foreach f,$(ABSENT),$(FILES_$(f)))
STANDS_IN = $(wildcard $(dir $(1))absent/$(notdir $(1)))

# The archives of some rooms, each before those it uses.
reverse = $(if $(1),$(call reverse,$(wordlist 2,$(words $(1)),$(1))) $(firstword $(1)))
LINK_ORDER := $(call reverse,$(ROOMS))
archives = $(patsubst %,$(P)/lib%.a,$(filter $(foreach r,$(1),$(CLOSURE_$(r))),$(LINK_ORDER)))

# ---- compilers -------------------------------------------------------------

ifeq ($(origin CC),default)
CC := $(CROSS:%=%-)gcc
endif
override CC += $(SYSROOT:%=--sysroot=%)
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wvla -Werror
# Texts for people are cut on purpose where they do not fit.
WARN += $(if $(findstring clang,$(CC)),,-Wno-format-truncation)
CPPFLAGS += -I. -I$(GEN)/proto -isystem $(SYSROOT)/usr/include/libnl3 -D_GNU_SOURCE -MMD -MP
# No path of the machine that builds is in what it builds: the same bytes come out everywhere.
# What Debian hardens programs with; tests/lint/hardening looks for it in what was built.
MACHINE := $(if $(CROSS),$(CROSS),$(shell $(CC) -dumpmachine 2>/dev/null))
HARDENING := -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection \
	$(if $(filter x86_64%,$(MACHINE)),-fcf-protection) \
	$(if $(filter aarch64%,$(MACHINE)),-mbranch-protection=standard)
CFLAGS_release := -O2 -g1 $(HARDENING) -ffile-prefix-map=$(CURDIR)=. \
	-ffile-prefix-map=$(BUILD)=build
CFLAGS_small := -Os -ffunction-sections -fdata-sections $(HARDENING) \
	-fno-asynchronous-unwind-tables -fno-unwind-tables
# Of sanitized code, functions that grow by inlining take a sixth of the compiler's time.
FAST = $(LEVEL) -g1 -fno-inline-functions-called-once
# And what hardly computes takes longer to compile than it runs. The most particular pattern counts.
LEVEL := -O1
PLAIN_CODE := gen tests/unit drivers controller $(filter-out lib/base lib/graph lib/lp,$(wildcard lib/*))
$(PLAIN_CODE:%=$(B)/obj/%/%.o): LEVEL := -O0
ifeq ($(MODE),release)
$(B)/obj/tests/unit/%.o $(B)/obj/tests/sim/%.o: CFLAGS += -O1 -g1
endif
$(patsubst %,$(B)/obj/%/%.o,controller/plan $(addprefix tests/unit/,mpi msccl mscclpp schedule optree embedding \
	bound tree topology)): LEVEL := -O1
# What ASan sees as well, or what costs more than it ever found, is not asked of UBSan.
CFLAGS_asan = $(FAST) -fsanitize=address,undefined -fno-sanitize=null,alignment,object-size,pointer-overflow \
	-fno-omit-frame-pointer -fno-sanitize-recover=all
CFLAGS_tsan = -O0 -g1 -fsanitize=thread
CFLAGS_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined
# -fPIC: the archives of rooms go into libweft_mpi.so as well.
PIC := -fPIC -fvisibility=hidden
ALL_CFLAGS = -std=c11 $(PIC) $(WARN) $(CFLAGS_$(MODE)) $(CFLAGS)
LIBS := -l:liblpsolve55_pic.a -lcolamd -lprotobuf-c -lnghttp2 -lmicrohttpd -lssh2 -lssl -lcrypto -lnettle \
	-lnl-route-3 -lnl-genl-3 -lnl-3 -luv -lsqlite3 -lyaml -ljansson -lcurl -lnauty -lgmp -lpthread -ldl -lm
# Programs with sanitizers are started by the thousand: at a fixed address they start faster.
LDFLAGS_all = $(PIE_$(MODE)) -Wl,-z,relro,-z,now -Wl,--as-needed $(LDFLAGS_$(MODE)) \
	$(CFLAGS_$(MODE)) $(LDFLAGS)
PIE_release := -pie
PIE_small := $(if $(filter yes,$(STATIC)),-static-pie,-pie)
PIE_asan := -no-pie
PIE_tsan := -pie
PIE_fuzz := -pie
# There are hundreds of them: gold, which binutils has, links them in a third of the time.
LDFLAGS_asan := -fuse-ld=gold
LDFLAGS_tsan := -fuse-ld=gold
comma := ,
SPACE := $() $()
ifeq ($(MODE),small)
# Relocations of tables packed, where the linker can.
LDFLAGS_small := -Wl,--gc-sections -s $(if $(findstring pack-relative-relocs,$(shell $(CC) \
	-Wl$(comma)--help 2>/dev/null)),-Wl$(comma)-z$(comma)pack-relative-relocs)
ifeq ($(STATIC),yes)
LIBS := $(patsubst -luv,-l:libuv_a.a,$(filter-out -lmicrohttpd -lcurl,$(LIBS))) -lsuitesparseconfig -lz
endif
endif

# The rooms mpi and preload, their tests and programs only.
PKG_CONFIG := $(if $(CROSS),PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) \
	PKG_CONFIG_LIBDIR=$(SYSROOT)/usr/lib/$(CROSS)/pkgconfig) pkg-config
MPI_CPPFLAGS := $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags ompi-c 2>/dev/null))
MPI_LIBS := $(shell $(PKG_CONFIG) --libs ompi-c 2>/dev/null)
$(B)/obj/runtime/mpi/%.o $(B)/obj/runtime/preload/%.o $(B)/obj/tests/unit/mpi/%.o: \
	CPPFLAGS += $(MPI_CPPFLAGS)
$(B)/tests/unit/mpi/% $(B)/weft-mpi-run: LIBS += $(MPI_LIBS)

# ---- generated code --------------------------------------------------------

# Services and their messages: reflection hands these out.
PUBLIC_PROTOS := $(wildcard proto/weft/v1/*.proto proto/grpc/*/*/*.proto)
PROTOS := $(PUBLIC_PROTOS) $(wildcard proto/weft/meta/*/*.proto proto/weft/joint/*/*.proto \
	proto/google/*/*.proto proto/etcd/*.proto proto/chakra/*.proto)
PB_C := $(patsubst proto/%.proto,$(GEN)/proto/%.pb-c.c,$(PROTOS))
PB_H := $(PB_C:.c=.h)

# Nothing is generated or compiled without what `make deps` installs: with CROSS the other machine's
# headers, else what is looked for first.
HEADERS := $(if $(CROSS),$(SYSROOT)/packages,$(if $(shell command -v protoc-c),,no-deps))
$(HEADERS):
	@echo "weft: first$(if $(CROSS),,$(comma) as root): make deps$(CROSS:%= CROSS=%)" >&2; exit 1

$(GEN)/proto/%.pb-c.c $(GEN)/proto/%.pb-c.h: proto/%.proto | $(HEADERS)
	@mkdir -p $(GEN)/proto
	$(Q)protoc-c -Iproto --c_out=$(GEN)/proto $<

# The compiled public files as bytes in C.
FILES_BIN := $(GEN)/proto/weft/meta/v1/files.bin
FILES_C := $(GEN)/proto/weft/meta/v1/bytes.c

$(FILES_BIN): $(PUBLIC_PROTOS) | $(HEADERS)
	@mkdir -p $(@D)
	$(Q)protoc -Iproto --include_imports --descriptor_set_out=$@ $(PUBLIC_PROTOS)

$(FILES_C): $(FILES_BIN)
	$(Q){ printf '#include <stddef.h>\n\nconst unsigned char weft_files[] = {\n'; \
		od -An -v -tu1 $< | sed 's/\([0-9][0-9]*\)/\1,/g'; \
		printf '};\nconst size_t weft_files_len = sizeof(weft_files);\n'; } >$@

# The files of the page that weftd serves, likewise.
WEB := $(sort $(wildcard controller/webui/web/*))
WEB_C := $(GEN)/webui/web.c

$(WEB_C): controller/webui/embed $(WEB)
	@mkdir -p $(@D)
	$(Q)controller/webui/embed $(WEB) >$@.tmp && mv $@.tmp $@

.SECONDARY: $(PB_C) $(PB_H) $(FILES_BIN) $(FILES_C) $(WEB_C)

# ---- room archives ---------------------------------------------------------

# Every C file of a folder except a program's main.c, and what stands in for those left out.
files = $(filter-out %/main.c,$(wildcard $(DIR_$(1))/*.c $(PARTS_$(1):%=$(DIR_$(1))/%/*.c)))
sources = $(filter-out $(LEFT_OUT),$(files)) \
	$(foreach f,$(filter $(LEFT_OUT),$(files)),$(call STANDS_IN,$(f)))
objects = $(patsubst %.c,$(B)/obj/%.o,$(1))
# Rooms that run in one thread, in the tests for TSan too: these are linked with what is released.
ONE_THREAD := $(if $(filter tsan,$(MODE)),optree restconf tl1 sonic robot mrr linux)
ifdef ONE_THREAD
$(BUILD)/release/obj/%.o: %.c | $(PB_H) $(HEADERS)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) -std=c11 $(PIC) $(WARN) $(CFLAGS_release) $(CFLAGS) -c $< -o $@
endif

# What ships has all of it been compiled in one way.
FLAGS := $(if $(filter release small,$(MODE)),$(B)/flags)

define room_rules
OBJ_$(1) := $(if $(filter proto,$(1)),\
	$(patsubst $(GEN)/%.c,$(B)/obj/gen/%.o,$(PB_C) $(FILES_C)),\
	$(if $(filter $(1),$(ONE_THREAD)),$(patsubst %.c,$(BUILD)/release/obj/%.o,$(call \
		sources,$(1))),$(call objects,$(call sources,$(1))))) \
	$(if $(filter webui,$(1)),$(B)/obj/gen/webui/web.o)
$(P)/lib$(1).a: $$(OBJ_$(1)) | $(HEADERS)
	@mkdir -p $$(@D) && rm -f $$@ && ar rcsD$(if $(LINKS),T) $$@ $$(filter %.o,$$^)
endef
ifeq ($(MODE),small)
$(ROOMS:%=$(B)/lib%.a) $(B)/obj/lib/base/version.o $(B)/version.o: $(B)/without
$(B)/weft $(B)/weftd: $(B)/without
endif
$(foreach r,$(ROOMS),$(eval $(call room_rules,$(r))))

$(B)/obj/gen/%.o: $(GEN)/%.c $(FLAGS) | $(HEADERS)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) -std=c11 $(PIC) $(CFLAGS_$(MODE)) $(CFLAGS) -c $< -o $@

# Written when it is another choice than the last, another version, or other flags (of the Makefile).
$(B)/without: SAYS = $(LEFT_OUT) $(STATIC)
$(B)/version: SAYS = $(VERSION)
$(B)/flags: SAYS = $(filter-out -ffile-prefix-map=%,$(CFLAGS_$(MODE)))
$(B)/without $(B)/version $(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo "$(SAYS)" | cmp -s - $@ || echo "$(SAYS)" >$@
FORCE:
# Programs have the version of the tree, and nothing else is made again with each commit.
$(B)/obj/lib/base/version.o: VERSION := $(RELEASE)
$(B)/obj/lib/base/version.o $(B)/version.o: CPPFLAGS += -DVERSION='"$(VERSION)"' \
	-DWITHOUT='"$(if $(LINKS),,$(ABSENT))"' \
	-DFEATURES='"$(filter-out $(if $(LINKS),,$(ABSENT)),$(FEATURES))"'
$(B)/version.o: lib/base/version.c $(B)/version $(FLAGS)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c $< -o $@
$(patsubst %.c,$(B)/obj/%.o,$(foreach f,$(LEFT_OUT),$(call STANDS_IN,$(f)))): \
	WARN += -Wno-unused-parameter

$(B)/obj/%.o: %.c $(FLAGS) | $(PB_H) $(HEADERS)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c $< -o $@

# ---- programs --------------------------------------------------------------

PROGRAMS := $(P)/weft $(P)/weftd $(B)/weft-emulator $(B)/weft-mpi-run
MAIN_weft := controller/cli/core/main.c
MAIN_weftd := controller/daemon/main.c
MAIN_weft-emulator := drivers/emulators/main.c
MAIN_weft-mpi-run := runtime/mpi/main.c
ROOM_weft := cli
ROOM_weftd := daemon
ROOM_weft-emulator := emulators
ROOM_weft-mpi-run := mpi

# What the linker took: for configs/release/linked.
LINKED = $(if $(filter release small,$(MODE)),-Wl$(comma)-Map=$@.map)
define program_rules
$(P)/$(1): $(call objects,$(MAIN_$(1))) $(B)/version.o $(call archives,$(ROOM_$(1)))
	$$(call say,LD)
	$$(Q)$$(CC) $$(LDFLAGS_all) $$(LINKED) $$(filter-out %/without,$$^) $$(LIBS) -o $$@
endef
MAIN_weft-frontiers := collective/finder/main.c
ROOM_weft-frontiers := finder
ifeq ($(MODE),small)
MAIN_weft := controller/small/main.c
ROOM_weft := small
$(B)/weftd: $(B)/weft
	@ln -sf weft $@
endif
$(foreach p,$(notdir $(PROGRAMS)) weft-frontiers,$(if $(filter small/weftd,$(MODE)/$(p)),,$(eval $(call program_rules,$(p)))))
$(B)/obj/collective/finder/table.o: collective/finder/frontiers.txt
$(B)/obj/collective/finder/small_groups.o: collective/finder/small_groups.txt

# Preloaded into programs of MPI: it has in it what it needs of the rooms.
PRELOAD := $(B)/libweft_mpi.so
$(PRELOAD): $(OBJ_preload) runtime/preload/exports.map \
		$(filter-out %/libpreload.a,$(call archives,preload))
	$(call say,LD)
	$(Q)$(CC) -shared -Wl,-z,defs,-z,relro,-z,now -Wl,--as-needed $(LINKED) \
		-Wl,--version-script=runtime/preload/exports.map $(CFLAGS_$(MODE)) $(LDFLAGS) \
		$(filter-out %.map,$^) $(LIBS) $(MPI_LIBS) -o $@

# ---- tests -----------------------------------------------------------------
# tests/unit/ROOM/test_*.c is one cmocka program each, linked with ROOM, what
# ROOM may include, and TEST_ROOM: what gives its tests something to work on.
TEST_schedule := bfb flow
TEST_mpi := bfb flow tree
TEST_preload := bfb flow
TEST_embedding := bfb
TEST_bfb := lp msccl
TEST_flow := bfb
TEST_tree := lp
TEST_routing := bfb
TEST_rank := bfb flow tree
TEST_msccl := bfb flow torus
TEST_mscclpp := bfb flow torus
TEST_drivers := emulators

# What benchmarks draw with has a test, too.
ALSO_test_svg.c := tests/bench/svg.c
# Ranks that wait sleep.
ALSO_test_execute.c := tests/fault/nap.c

UNIT := $(wildcard tests/unit/*/test_*.c)
UNIT_BIN := $(patsubst %.c,$(B)/%,$(UNIT))
test_rooms = $(1) $(TEST_$(1))
room_of = $(word 3,$(subst /, ,$(1)))

define unit_rules
$(B)/$(patsubst %.c,%,$(1)): $(call objects,$(1) tests/unit/shard.c $(ALSO_$(notdir $(1)))) \
		$(call archives,$(call test_rooms,$(call room_of,$(1))))
	@mkdir -p $$(@D)
	$$(call say,LD)
	$$(Q)$$(CC) $$(LDFLAGS_all) -Wl,--wrap=_cmocka_run_group_tests $$^ $$(LIBS) \
		-lcmocka -o $$@
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

# Preloaded by tests of the store and of MPI; always plain shared objects.
SHIMS := $(patsubst %,$(BUILD)/release/tests/fault/%.so,crash_at_sync full_disk clock_jump nap \
	power_cut)
$(BUILD)/release/tests/fault/%.so: tests/fault/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -shared \
		-fPIC $< -ldl -o $@

BENCH := $(wildcard tests/bench/bench_*.c)
BENCH_BIN := $(patsubst %.c,$(B)/%,$(BENCH))
define bench_rules
$(B)/$(patsubst %.c,%,$(1)): $(call objects,$(1) tests/bench/svg.c) \
		$(call archives,daemon cli emulators)
	@mkdir -p $$(@D)
	$$(call say,LD)
	$$(Q)$$(CC) $$(LDFLAGS_all) $$^ $$(LIBS) -o $$@
endef
$(foreach t,$(BENCH),$(eval $(call bench_rules,$(t))))

# The whole controller on virtual time: what is in tests/sim stands before libc. SIM_WRAPS:
# functions of the release archives that it wraps (ld --wrap).
SIM := $(wildcard tests/sim/*.c tests/sim/*/*.c)
SIM_WRAPS := emu_change_log_init emu_log_changes drv_set_trace drv_submit drv_snapshot \
	store_open store_open_replica store_open_shared store_free store_lead store_new_term \
	store_begin store_mark store_sync store_commit store_commit_proven \
	store_end store_publish store_published store_follow store_jobs_put daemon_main \
	undo_begin compare_after apply_before_command job_view_mark rpc_send handle_watch \
	plan_process_new plan_process_ask plan_process_free plan_process_rest
$(B)/obj/tests/sim/%.o: PIC := -fPIC
# It stands in for calls of libc, so it has none that are checked.
$(B)/obj/tests/sim/%.o: CFLAGS += -U_FORTIFY_SOURCE
sim: $(B)/weft-sim
$(B)/weft-sim: $(call objects,$(SIM)) $(call archives,daemon cli emulators etcd)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS_all) $(SIM_WRAPS:%=-Wl$(comma)--wrap=%) $^ $(LIBS) -o $@

# ---- targets ---------------------------------------------------------------

.PHONY: all small small-programs links shims sim deps docs docs-api browser simgrid demo check bench lint check-deps fuzz soak test-changed install install-service uninstall deb deb-small pack-all pack-small container dist sbom clean help frontiers
.DEFAULT_GOAL := all

help:
	@echo "make demo        plan, apply and verify two jobs on emulated devices, run a schedule"
	@echo "make deps        install what is needed to build, as root"
	@echo "make all         build/release/{weft,weftd,weft-emulator,weft-mpi-run}"
	@echo "make check       all tests (installs what is missing)"
	@echo "make install     to PREFIX ($(PREFIX)); make uninstall"
	@echo "make deb         Debian packages: weft, weft-lab, weft-mpi"
	@echo "make small       weft and weftd for a control board; make deb-small: as a package"
	@echo "make CROSS=aarch64-linux-gnu {deps,all,small,deb,deb-small}   for another processor"
	@echo "make container   what configs/container/Dockerfile makes an image of"
	@echo "make dist sbom   a tarball; what programs are made of, as SPDX"
	@echo "make bench lint check-deps docs fuzz soak clean frontiers"
	@echo "make test-ROOM   unit tests of one room: $(ROOMS)"
	@echo "make test-FOLDER or of those in a folder: $(FOLDERS)"
	@echo "make sim         build/release/weft-sim: the whole controller on virtual time"
	@echo "make test-changed [SINCE=COMMIT]   only the tests that what changed can reach"

all: $(PROGRAMS) $(PRELOAD)

deps:
	@tests/deps $(if $(CROSS),$(CROSS_TOOLS),$(PACKAGES))
	$(if $(CROSS),@$(CC) -dM -E -x c /dev/null | grep -q SIZEOF_INT128 || \
		{ echo "weft: not supported: processors of 32 bits ($(CROSS)): numbers have 128" >&2; exit 1; })
	$(if $(CROSS),@tests/sysroot $(CROSS) $(SYSROOT) $(CROSS_LIBRARIES))

# Goes on looking for better topologies than those in the table that weft has in it, for hours: SETS
# sets of generators a search, in another sequence for another SEED.
SETS := 60000
SEED := 1
frontiers: $(B)/weft-frontiers
	$< collective/finder/frontiers.txt $(SETS) $(SEED)

# weftd and weft for a control board, one program: optimised for size, and without what FEATURES says.
small:
	@$(MAKE) -j2 MODE=small small-programs

# For tests/integration/small_links.sh.
links: $(P)/weft $(P)/weftd

small-programs: $(B)/weft $(B)/weftd
	@TOOLS=$(CROSS:%=%-) tests/sizes $< $(addprefix $(BUILD)/$(CROSS:%=%/)release/,weft weftd)

demo: deps
	@$(MAKE) -j2 all
	@B=$(B) configs/demo/run

browser:
	@tests/deps $(BROWSER) || echo "no browser: its tests are skipped" >&2

simgrid:
	@tests/deps $(SIMGRID) || echo "no SimGrid: its test is skipped" >&2

check: deps browser simgrid
	@tests/deps $(DEB_PACKAGES) $(SLURM) $(SSH)
	@$(MAKE) check-builds
	@$(RUN_TESTS)

# Rooms with threads: their unit tests also run under TSan.
TSAN_ROOMS := daemon rpc
# And of rooms that hardly have any, the tests that start some.
TSAN_TESTS := base/test_parallel finder/test_find mesh/test_portfolio

# Tests that go through all of a small world do so without sanitizers; with
# them they do a small part of it (tests/unit/world.h).
PLAIN_TESTS := apply/test_joint apply/test_recover bfb/test_steady embedding/test_embedding \
	finder/test_choose finder/test_find finder/test_table make/test_chooser make/test_hierarchical make/test_make \
	mesh/test_ring_mesh msccl/test_every_size msccl/test_lower \
	mscclpp/test_every_plan optree/test_broadcast optree/test_compose optree/test_grouped \
	optree/test_retune optree/test_simulate plan/test_choice plan/test_fits \
	plan/test_job_digraph plan/test_job_ports plan/test_moves plan/test_ring_servers \
	plan/test_servers plan/test_slices plan/test_trunks reconfigure/test_orders \
	reconfigure/test_reconfigure ring/test_ring routing/test_virtual_lanes store/test_faults torus/test_make \
	torus/test_times tree/test_stagger workload/test_call_lights workload/test_gaps \
	workload/test_plans

# Rooms that lean on libraries in C: `make soak` runs their tests under valgrind, which sees into these.
VALGRIND_ROOMS := rpc store
# And of drivers, the tests of what leans on libssh2 and libcurl.
VALGRIND_TESTS := drivers/test_conformance_ssh drivers/test_restconf drivers/test_ssh

RUN_TESTS = BUILD=$(BUILD) TSAN_ROOMS="$(TSAN_ROOMS)" TSAN_TESTS="$(TSAN_TESTS)" \
	PLAIN_TESTS="$(PLAIN_TESTS)" VALGRIND_ROOMS="$(VALGRIND_ROOMS)" \
	VALGRIND_TESTS="$(VALGRIND_TESTS)" tests/run

check-builds:
	@$(MAKE) -j2 MODE=asan programs-and-tests
	@$(MAKE) -j2 MODE=release all shims plain-tests sim
	@$(MAKE) -j2 MODE=tsan tsan-tests

shims: $(SHIMS)

programs: $(PROGRAMS) $(PRELOAD)

programs-and-tests: programs $(UNIT_BIN) $(FUZZ_BIN)

plain-tests: $(PLAIN_TESTS:%=$(B)/tests/unit/%)

tsan-tests: $(foreach r,$(TSAN_ROOMS),$(filter $(B)/tests/unit/$(r)/%,$(UNIT_BIN))) \
	$(TSAN_TESTS:%=$(B)/tests/unit/%)

# The unit tests of a room, or of all rooms in a folder, in asan unless MODE is given on the command
# line.
test-%:
	@$(MAKE) MODE=$(if $(filter command%,$(origin MODE)),$(MODE),asan) run-unit-$*

FOLDERS := lib topology collective runtime rwa optree drivers controller
rooms_in = $(foreach r,$(ROOMS),$(if $(filter $(1) $(1)/%,$(DIR_$(r))),$(r)))
define run_unit_rules
run-unit-$(1): $(foreach r,$(call rooms_in,$(2)),$(filter $(B)/tests/unit/$(r)/%,$(UNIT_BIN)))
	@for t in $$^; do echo "== $$$$t"; $$$$t || exit 1; done
endef
$(foreach r,$(filter-out $(FOLDERS),$(ROOMS)),$(eval $(call run_unit_rules,$(r),$(DIR_$(r)))))
$(foreach f,$(FOLDERS),$(eval $(call run_unit_rules,$(f),$(f))))

# Only the tests that what changed since a commit can reach; what is not committed yet has changed.
ifneq ($(filter test-changed,$(MAKECMDGOALS)),)
SINCE := HEAD
SCRIPTS := golden integration fault
CHANGED := $(shell git diff --name-only $(SINCE) && git ls-files --others --exclude-standard)
CHANGED_FOLDERS := $(sort $(patsubst %/,%,$(dir $(CHANGED))))
CHANGED_ROOMS := $(foreach r,$(ROOMS),$(if $(filter $(DIR_$(r)) $(PARTS_$(r):%=$(DIR_$(r))/%) \
	$(DIR_$(r))/absent,$(CHANGED_FOLDERS)),$(r))) \
	$(if $(filter proto/%,$(CHANGED)),proto) $(if $(filter controller/webui/%,$(CHANGED)),webui)
# Whether rooms that some rest on are among those.
reached = $(filter $(CHANGED_ROOMS),$(foreach r,$(1),$(CLOSURE_$(r))))
CHANGED_TESTS := lint/ \
	$(foreach t,$(UNIT),$(if $(call reached,$(call test_rooms,$(call room_of,$(t))))$(filter \
		$(dir $(t))%,$(CHANGED)),$(t:tests/%.c=%))) \
	$(foreach t,$(FUZZ),$(if $(call reached,$(call fuzz_room,$(t)))$(filter \
		$(t) tests/fuzz/corpus/$(patsubst fuzz_%.c,%,$(notdir $(t)))/%,$(CHANGED)),$(t:tests/%.c=%))) \
	$(if $(call reached,cli daemon emulators mpi preload)$(filter-out %.sh,$(filter configs/% \
		$(SCRIPTS:%=tests/%/%),$(CHANGED))),$(SCRIPTS:%=%/),$(patsubst tests/%,%,$(filter tests/%.sh,$(CHANGED)))) \
	$(if $(call reached,cli daemon emulators)$(filter tests/sim/%,$(CHANGED)),sim/) \
	$(if $(filter docs/% %.md,$(CHANGED)),golden/docs golden/api)
# What all tests rest on.
CHANGED_ALL := $(filter Makefile tests/run tests/lib.sh $(wildcard tests/unit/*.[ch]) tests/fuzz/replay.c,$(CHANGED))
endif
test-changed: deps
	@$(if $(CHANGED_ALL),,TESTS='$(subst $(SPACE),|,$(strip $(CHANGED_TESTS)))') $(RUN_TESTS)

bench: deps
	@$(MAKE) -j2 bench-build
	@BUILD=$(BUILD) B=$(B) tests/bench/run

bench-build: $(PROGRAMS) $(BENCH_BIN)

# The reference of the interface, and the pictures that README and docs show; tests/golden/api.sh
# and docs.sh say when they are not of now.
docs: docs-api all
	@docs/pictures/make $(B)/weft docs/pictures

docs-api: deps
	@mkdir -p $(GEN)
	@protoc -I proto --include_source_info --include_imports \
		--descriptor_set_out=$(GEN)/api.pb $(wildcard proto/weft/v1/*.proto)
	@docs/api/generate $(GEN)/api.pb docs/api

lint:
	@for l in tests/lint/*; do $$l || exit 1; done
	@$(MAKE) -j2 BUILD=$(BUILD) MODE=release CC=clang B=$(BUILD)/clang all

check-deps:
	@tests/lint/check-deps

fuzz:
	@$(MAKE) MODE=fuzz CC=clang fuzz-build
	@B=$(BUILD)/fuzz tests/fuzz/run

fuzz-build: $(FUZZ_BIN)

soak: deps browser simgrid
	@tests/deps $(DEB_PACKAGES) $(SLURM) $(SSH) valgrind
	@$(MAKE) check-builds
	@$(RUN_TESTS) --soak

# ---- installing and packing ---------------------------------------------------

ZSHDIR ?= $(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
FISHDIR ?= $(if $(filter /usr,$(PREFIX)),$(PREFIX)/share/fish/vendor_completions.d,$(SYSCONFDIR)/fish/completions)
DOCDIR ?= $(PREFIX)/share/doc/weft
# put: MODE, FOLDER, FILES.
put = install -d $(DESTDIR)$(2) && install -m $(1) $(3) $(DESTDIR)$(2)
put_as = install -D -m $(1) $(3) $(DESTDIR)$(2)

install: all install-service
	$(call put,755,$(PREFIX)/bin,$(B)/weft-emulator $(B)/weft-mpi-run)
	$(call put,644,$(PREFIX)/lib/weft,$(PRELOAD))
	$(call put,644,$(PREFIX)/share/man/man1,docs/man/weft-emulator.1 docs/man/weft-mpi-run.1)
	$(call put,644,$(PREFIX)/share/man/man7,$(wildcard docs/man/*.7))
	$(call put,644,$(PREFIX)/share/weft/prometheus,configs/prometheus/weft.rules.yml)
	$(call put,644,$(PREFIX)/share/weft/grafana,configs/grafana/weft.json)
	$(call put,644,$(PREFIX)/share/weft/proto/weft/v1,$(wildcard proto/weft/v1/*.proto))
	$(call put,644,$(DOCDIR)/examples/fabrics,$(wildcard configs/fabrics/*.yaml))
	$(foreach f,ansible client kubernetes slurm steps,$(call put,644,$(DOCDIR)/examples/$(f),\
		$(wildcard docs/examples/$(f)/*)) &&) chmod 755 $(DESTDIR)$(DOCDIR)/examples/slurm/*.sh
	$(if $(DESTDIR),,@systemd-sysusers $(PREFIX)/lib/sysusers.d/weft.conf || \
		echo "weft: weftd.service runs as the user weft, whom nothing made here" >&2)

# What a control board has too. The settings of one who has weft already stay.
install-service: $(B)/weft $(B)/weftd
	$(call put,755,$(PREFIX)/bin,$(B)/weft)
	$(if $(filter small,$(MODE)),install -d $(DESTDIR)$(PREFIX)/sbin && \
		ln -sf ../bin/weft $(DESTDIR)$(PREFIX)/sbin/weftd,$(call put,755,$(PREFIX)/sbin,$(B)/weftd))
	$(call put,644,$(PREFIX)/share/man/man1,docs/man/weft.1)
	$(call put,644,$(PREFIX)/share/man/man5,docs/man/weft.yaml.5)
	$(call put,644,$(PREFIX)/share/man/man8,docs/man/weftd.8)
	$(call put_as,644,$(PREFIX)/share/bash-completion/completions/weft,configs/completion/weft.bash)
	$(call put,644,$(ZSHDIR),configs/completion/_weft)
	$(call put,644,$(FISHDIR),configs/completion/weft.fish)
	$(call put,644,$(DOCDIR),NOTICE)
	$(call put_as,644,$(PREFIX)/lib/sysusers.d/weft.conf,configs/systemd/weft.sysusers)
	$(call put,644,$(UNITDIR),configs/systemd/weftd.socket)
	sed 's|/usr/local|$(PREFIX)|; s|/etc|$(SYSCONFDIR)|' configs/systemd/weftd.service \
		>$(DESTDIR)$(UNITDIR)/weftd.service
	[ -e $(DESTDIR)$(SYSCONFDIR)/default/weftd ] || \
		$(call put_as,644,$(SYSCONFDIR)/default/weftd,configs/systemd/weftd.default)

# The files that `make install` would put there, but for settings; what weftd remembers stays.
uninstall:
	@list=$$(mktemp -d) && $(MAKE) -s install DESTDIR=$$list/ >/dev/null && \
	(cd $$list && find . ! -type d ! -path './$(SYSCONFDIR)/default/*') | while read -r f; do \
		rm -f "$(DESTDIR)/$$f"; done; \
	(cd $$list && find . -depth -type d -path '*weft*') | while read -r f; do \
		rmdir --ignore-fail-on-non-empty "$(DESTDIR)/$$f"; done; rm -rf $$list

# Debian packages, as of the last commit's time the same bytes whenever and wherever they are built:
# `make deb` of the release build, weft, weft-lab and weft-mpi, `make deb-small` of `make small`,
# weft-small. debhelper wants its files in debian/: it gets a folder that shows the tree beside them.
DEB := $(BUILD)/$(if $(CROSS),$(CROSS)/)deb/weft
DEB_ARCH = $(shell dpkg-architecture $(if $(CROSS),-f -t$(CROSS)) -qDEB_HOST_ARCH 2>/dev/null)
# pack: PACKAGES of those in configs/debian/control, and which are not made.
define pack
	@rm -rf $(DEB) && mkdir -p $(DEB)
	@ln -s $(CURDIR)/* $(DEB) && cp -r configs/debian $(DEB)
	@configs/release/changelog $(WEFT_VERSION) >$(DEB)/debian/changelog
	$(Q)cd $(DEB) && BUILD=$(abspath $(BUILD)) DH_OPTIONS="$(2:%=-N%)" \
		DEB_BUILD_OPTIONS="noautodbgsym $$DEB_BUILD_OPTIONS" \
		dpkg-buildpackage -b -us -uc $(if $(CROSS),-d -Pcross -a$(DEB_ARCH)) >../log 2>&1 || \
		{ tail -n 30 ../log >&2; exit 1; }
	@rm -f $(1:%=$(BUILD)/%_*_$(DEB_ARCH).deb)
	@mv $(1:%=$(DEB)/../%_*.deb) $(BUILD)
	@printf '%s\n' $(1:%=$(BUILD)/%_$(VERSION)_$(DEB_ARCH).deb)
endef

deb:
	@tests/deps $(DEB_PACKAGES) && $(MAKE) deps
	@$(MAKE) -j2 MODE=release all
	@$(MAKE) MODE=release pack-all

deb-small:
	@tests/deps $(DEB_PACKAGES) && $(MAKE) deps
	@$(MAKE) -j2 MODE=small small-programs
	@$(MAKE) MODE=small pack-small

# By a make of their own, for which all tools are there.
pack-all:
	$(call pack,weft-mpi weft-lab weft,weft-small)

pack-small:
	$(call pack,weft-small,weft-mpi weft-lab weft)

# The folder that configs/container/Dockerfile makes an image of: static programs, no package.
container:
	@$(MAKE) small STATIC=yes WITHOUT=
	@rm -rf $(BUILD)/container && mkdir -p $(BUILD)/container/bin $(BUILD)/container/empty
	@cp -P $(BUILD)/small/weft $(BUILD)/small/weftd $(BUILD)/container/bin

# A tarball of the last commit, which builds where there is no git.
dist:
	@mkdir -p $(BUILD)
	@git archive --prefix=weft-$(VERSION)/ --add-virtual-file=weft-$(VERSION)/VERSION:"$(WEFT_VERSION)" \
		HEAD | gzip -9n >$(BUILD)/weft-$(VERSION).tar.gz
	@ls $(BUILD)/weft-$(VERSION).tar.gz

# What programs are made of, as SPDX: the packages of all libraries that the linker took.
sbom: all
	@configs/release/sbom $(WEFT_VERSION) "$(SYSROOT)" $(PROGRAMS) $(PRELOAD) >$(B)/weft.spdx.json || { rm $(B)/weft.spdx.json; exit 1; }
	@ls $(B)/weft.spdx.json

clean:
	rm -rf $(BUILD)

D_FOLDERS := $(wildcard $(B)/obj $(foreach r,$(ONE_THREAD),$(BUILD)/release/obj/$(DIR_$(r))))
-include $(if $(D_FOLDERS),$(shell find $(D_FOLDERS) -name '*.d'))
