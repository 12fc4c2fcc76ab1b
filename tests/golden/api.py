# SPDX-License-Identifier: Apache-2.0
# Run by api.sh: SET. One line for each method, field and value of an
# enumeration; messages that contain themselves go to standard error.
import sys

from google.protobuf import descriptor_pb2

files = descriptor_pb2.FileDescriptorSet.FromString(
    open(sys.argv[1], "rb").read()).file
contains = {}


def kind(field):
    name = descriptor_pb2.FieldDescriptorProto.Type.Name(field.type)
    text = field.type_name.lstrip(".") or name[len("TYPE_"):].lower()
    return ("repeated " if field.label == field.LABEL_REPEATED else "") + text


def tell_enum(enum, scope):
    for value in enum.value:
        print("value", scope + enum.name, value.number, value.name)


def tell_message(message, scope):
    name = scope + message.name
    contains[name] = {f.type_name.lstrip(".") for f in message.field
                      if f.type == f.TYPE_MESSAGE}
    for field in message.field:
        print("field", name, field.number, field.name, kind(field))
    for enum in message.enum_type:
        tell_enum(enum, name + ".")
    for nested in message.nested_type:
        tell_message(nested, name + ".")


def reachable(name):
    seen, todo = set(), [name]
    while todo:
        for inner in contains.get(todo.pop(), ()):
            if inner not in seen:
                seen.add(inner)
                todo.append(inner)
    return seen


for f in files:
    scope = f.package + "."
    for message in f.message_type:
        tell_message(message, scope)
    for enum in f.enum_type:
        tell_enum(enum, scope)
    for service in f.service:
        for m in service.method:
            print("method", scope + service.name + "/" + m.name,
                  "%s%s -> %s%s" % (
                      "stream " if m.client_streaming else "",
                      m.input_type.lstrip("."),
                      "stream " if m.server_streaming else "",
                      m.output_type.lstrip(".")))
for name in contains:
    if name in reachable(name):
        print(name, "contains itself", file=sys.stderr)
