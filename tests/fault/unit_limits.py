# SPDX-License-Identifier: Apache-2.0
# unit_limits.py UNIT COMMAND...: runs the command under the limits of a service that a system call
# may meet, by what systemd itself does for them: SystemCallFilter=, SystemCallErrorNumber=,
# MemoryDenyWriteExecute=, RestrictNamespaces=, NoNewPrivileges= of the unit's file.
import ctypes
import errno
import os
import subprocess
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 38, 65, 1
ALLOW, ERRNO = 0x7fff0000, 0x00050000

unit = [line.strip().split("=", 1) for line in open(sys.argv[1]) if "=" in line]
values = {key: value for key, value in unit}
libc, seccomp = ctypes.CDLL(None, use_errno=True), ctypes.CDLL("libseccomp.so.2")
seccomp.seccomp_init.restype = ctypes.c_void_p


def calls(group):
    if not group.startswith("@"):
        return {group}
    lines = subprocess.run(["systemd-analyze", "syscall-filter", group], check=True,
                           capture_output=True, text=True).stdout.split("\n")[1:]
    names = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    return set().union(*map(calls, names))


# As systemd.exec(5) has it: the first line says whether it is what may be, or may not.
allowed = set()
for key, value in unit:
    if key == "SystemCallFilter":
        names = set().union(*map(calls, value.lstrip("~").split()))
        allowed = allowed - names if value.startswith("~") else allowed | names


def load():
    refuse = ERRNO | getattr(errno, values["SystemCallErrorNumber"])
    context = ctypes.c_void_p(seccomp.seccomp_init(refuse))
    for name in allowed:
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        if number >= 0 and seccomp.seccomp_rule_add(context, ALLOW, number, 0):
            sys.exit("unit_limits.py: %s" % name)
    if seccomp.seccomp_load(context):
        sys.exit("unit_limits.py: no filter")


assert values["NoNewPrivileges"] == values["MemoryDenyWriteExecute"] == "yes" and allowed
libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
if libc.prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0):
    print("unit_limits.py: this kernel has no MDWE", file=sys.stderr)
load()
os.execvp(sys.argv[2], sys.argv[2:])
