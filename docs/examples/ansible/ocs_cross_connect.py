#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An Ansible module: cross-connects of an optical switch that weftd has, as one group.

It takes the arguments of sonic-mgmt's module of this name and returns what that does, so that it
can stand in its place (ansible/library). Where that one sends a command a cross-connect and deletes
whatever is in the way, this makes one `weft circuit set`: all or nothing, read back, and a port
that another group has is not taken but told, with its owner.

    ocs_cross_connect:
      cross_connects: { 1: 29, 2: 30 }    # 1A-29B, 29A-1B, 2A-30B, 30A-2B
      group: "{{ testbed_name }}"         # default: WEFT_GROUP, or the login's name
      switch: ocs-1                       # default: WEFT_SWITCH
      lease: 8h                           # default: until it is removed

The group of that name and the switch's, bed-ocs-1, has just these afterwards; none, and it is
removed. The switches of a testbed are so of one name, and none undoes another's. `clear_stale`, `verify`,
`verify_retries` and `verify_delay` are taken and not needed: what is stale is weftd's to clear, and
it reads back each circuit.
"""
import getpass
import json
import os
import subprocess

from ansible.module_utils.basic import AnsibleModule

OPTIONS = {
    "cross_connects": {"required": True, "type": "dict"},
    "clear_stale": {"type": "bool", "default": True},
    "verify": {"type": "bool", "default": True},
    "verify_retries": {"type": "int", "default": 12},
    "verify_delay": {"type": "int", "default": 5},
    "group": {"type": "str"},
    "switch": {"type": "str"},
    "lease": {"type": "str"},
}


def weft(*words, text=None):
    """Exit status, output and message of a command."""
    done = subprocess.run(("weft",) + words, input=text, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr.strip()


def ids(pairs):
    """Both ways of each."""
    return [f"{x}A-{y}B" for a, b in pairs for x, y in ((a, b), (b, a))]


def of_group(module, group, switch):
    """Cross-connects that a group has on the switch, made or on their way."""
    status, out, message = weft("circuit", "list", "--format", "json")
    if status:
        module.fail_json(msg=f"weft circuit list: {message}", rc=status)
    have = []
    for row in json.loads(out)["circuits"]:
        if row["group"] == group and row["device"] == switch:
            both = ids([(row["in"], row["out"])])
            have += both if row["direction"] == "both" else both[:1]
    return have


def main():
    """Plans, and unless it is only asked for makes, the group."""
    module = AnsibleModule(argument_spec=OPTIONS, supports_check_mode=True)
    p = module.params
    group = p["group"] or os.environ.get("WEFT_GROUP") or getpass.getuser()
    switch = p["switch"] or os.environ.get("WEFT_SWITCH")
    group = f"{group}-{switch}"
    pairs = [(str(a), str(b)) for a, b in p["cross_connects"].items()]
    wrong = [pair for pair in pairs if not all(port.isascii() and port.isdigit() for port in pair)]
    if wrong or not switch:
        module.fail_json(msg=f"ports are numbers: {wrong}" if wrong else "switch is missing")
    desired, have = ids(pairs), of_group(module, group, switch)
    result = {"desired": desired, "cleared_stale": [],
              "added": [i for i in desired if i not in have],
              "removed": [i for i in have if i not in desired]}
    result["changed"] = bool(result["added"] or result["removed"])
    if module.check_mode or not (pairs or have):
        module.exit_json(**result)
    if pairs:
        lease = ("--lease", p["lease"]) if p["lease"] else ()
        status, _, message = weft("circuit", "set", group, "-", *lease,
                                  text="".join(f"{switch}.{a} {switch}.{b}\n" for a, b in pairs))
    else:
        status, _, message = weft("circuit", "remove", group)
    if status:
        module.fail_json(msg=message, rc=status, **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
