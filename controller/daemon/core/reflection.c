/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc.reflection: hands out the compiled .proto files of all services, so
 * that generic clients need no files of their own. v1 and v1alpha differ in
 * the package's name only. The files are part of the program; they are read
 * and indexed when a client asks for the first time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/core.h"
#include "grpc/reflection/v1/reflection.pb-c.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"
#include "weft/meta/v1/files.pb-c.h"

typedef Grpc__Reflection__V1__ServerReflectionRequest request;
typedef Grpc__Reflection__V1__ServerReflectionResponse response;

#define QUESTION(kind) \
	GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##kind
#define ANSWER(kind) \
	GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##kind

extern const unsigned char weft_files[];
extern const size_t weft_files_len;

enum symbol_kind { SERVICE, METHOD, MESSAGE, ENUM };

struct symbol {
	char *name;		/* with its package */
	enum symbol_kind kind;
	size_t file;
};

struct reflection {
	bool indexed;
	Weft__Meta__V1__FileSet *set;
	Weft__Meta__V1__File **files;	/* set->n_file, decoded */
	VEC(struct symbol) symbols;
};

/* ---- the index ----------------------------------------------------------- */

/* Back to an index that was not loaded. */
static void reflection_reset(struct reflection *r)
{
	for (size_t i = 0; i < r->symbols.n; i++) {
		free(r->symbols.v[i].name);
	}
	vec_fini(&r->symbols);
	for (size_t i = 0; r->files && i < r->set->n_file; i++) {
		rpc_free_message(r->files[i] ? &r->files[i]->base : NULL);
	}
	free(r->files);
	rpc_free_message(r->set ? &r->set->base : NULL);
	*r = (struct reflection){ .indexed = false };
}

void reflection_free(struct reflection *r)
{
	if (r) {
		reflection_reset(r);
		free(r);
	}
}

/* Adds scope.name. The name lives as long as the index. */
static const char *add_symbol(struct reflection *r, enum symbol_kind kind, size_t file,
			      const char *scope, const char *name)
{
	size_t len = strlen(scope) + strlen(name) + 2;
	struct symbol s = { .name = x_alloc(len, 1), .kind = kind, .file = file };

	snprintf(s.name, len, "%s%s%s", scope, scope[0] ? "." : "", name);
	vec_push(&r->symbols, s);
	return s.name;
}

/* Enumerations of a file or of a message. */
static void add_enums(struct reflection *r, size_t file, const char *scope,
		      size_t n, Weft__Meta__V1__Named **v)
{
	for (size_t i = 0; i < n; i++) {
		add_symbol(r, ENUM, file, scope, v[i]->name);
	}
}

/* A message type and those inside it. */
static int add_messages(struct reflection *r, size_t file, const char *scope, size_t n,
			const ProtobufCBinaryData *v, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		ProtobufCMessage *decoded;
		Weft__Meta__V1__Message *m;
		const char *name;

		rc = rpc_decode(&weft__meta__v1__message__descriptor, v[i].data,
				v[i].len, 0, &decoded, err);
		if (rc) {
			break;
		}
		m = (Weft__Meta__V1__Message *)decoded;
		name = add_symbol(r, MESSAGE, file, scope, m->name);
		rc = add_messages(r, file, name, m->n_nested_type, m->nested_type, err);
		if (rc == 0) {
			add_enums(r, file, name, m->n_enum_type, m->enum_type);
		}
		rpc_free_message(decoded);
	}
	return rc;
}

/* The services of a file, and their methods as SERVICE.METHOD. */
static void add_services(struct reflection *r, size_t file, const Weft__Meta__V1__File *f)
{
	for (size_t i = 0; i < f->n_service; i++) {
		const Weft__Meta__V1__Service *s = f->service[i];
		const char *name = add_symbol(r, SERVICE, file, f->package, s->name);

		for (size_t k = 0; k < s->n_method; k++) {
			add_symbol(r, METHOD, file, name, s->method[k]->name);
		}
	}
}

/* Decodes one file and adds its symbols. */
static int add_file(struct reflection *r, size_t file, struct err *err)
{
	const ProtobufCBinaryData *bytes = &r->set->file[file];
	ProtobufCMessage *decoded;
	Weft__Meta__V1__File *f;
	int rc;

	rc = rpc_decode(&weft__meta__v1__file__descriptor, bytes->data, bytes->len, 0, &decoded,
			err);
	if (rc) {
		return rc;
	}
	f = r->files[file] = (Weft__Meta__V1__File *)decoded;
	add_services(r, file, f);
	rc = add_messages(r, file, f->package, f->n_message_type, f->message_type, err);
	if (rc) {
		return rc;
	}
	add_enums(r, file, f->package, f->n_enum_type, f->enum_type);
	return 0;
}

/* Reads and indexes the files. */
static int reflection_load(struct reflection *r, struct err *err)
{
	ProtobufCMessage *decoded;
	int rc;

	rc = rpc_decode(&weft__meta__v1__file_set__descriptor, weft_files,
			weft_files_len, 0, &decoded, err);
	if (rc) {
		return rc;
	}
	r->set = (Weft__Meta__V1__FileSet *)decoded;
	r->files = x_new(r->set->n_file, sizeof(*r->files));
	for (size_t i = 0; i < r->set->n_file; i++) {
		rc = add_file(r, i, err);
		if (rc) {
			return rc;
		}
	}
	r->indexed = true;
	return 0;
}

struct reflection *reflection_new(void)
{
	return x_new(1, sizeof(struct reflection));
}

/* ---- answers ------------------------------------------------------------- */

/* By its full name, package.Type or package.Service.Method. O(symbols). */
static const struct symbol *find_symbol(const struct reflection *r, const char *name)
{
	for (size_t i = 0; i < r->symbols.n; i++) {
		if (strcmp(r->symbols.v[i].name, name) == 0) {
			return &r->symbols.v[i];
		}
	}
	return NULL;
}

/* The file's index, or n_file. */
static size_t find_file(const struct reflection *r, const char *name)
{
	size_t i = 0;

	while (i < r->set->n_file && strcmp(r->files[i]->name, name) != 0) {
		i++;
	}
	return i;
}

/* Marks a file and all that it imports. */
static void mark(const struct reflection *r, size_t file, bool *wanted)
{
	const Weft__Meta__V1__File *f = r->files[file];

	if (wanted[file]) {
		return;
	}
	wanted[file] = true;
	for (size_t i = 0; i < f->n_dependency; i++) {
		size_t k = find_file(r, f->dependency[i]);

		if (k < r->set->n_file) {
			mark(r, k, wanted);
		}
	}
}

/* The file, and behind it all that it imports, each once: a client need not ask
 * for them one by one. */
static int send_file(struct rpc_call *call, const struct reflection *r,
		     size_t file, response *res, struct err *err)
{
	Grpc__Reflection__V1__FileDescriptorResponse body =
		GRPC__REFLECTION__V1__FILE_DESCRIPTOR_RESPONSE__INIT;
	ProtobufCBinaryData *v = x_new(r->set->n_file, sizeof(*v));
	bool *wanted = x_new(r->set->n_file, sizeof(*wanted));
	int rc;

	mark(r, file, wanted);
	body.file_descriptor_proto = v;
	v[body.n_file_descriptor_proto++] = r->set->file[file];
	for (size_t i = 0; i < r->set->n_file; i++) {
		if (wanted[i] && i != file) {
			v[body.n_file_descriptor_proto++] = r->set->file[i];
		}
	}
	res->message_response_case = ANSWER(FILE_DESCRIPTOR_RESPONSE);
	res->file_descriptor_response = &body;
	rc = rpc_send(call, &res->base, err);
	free(v);
	free(wanted);
	return rc;
}

static int send_services(struct rpc_call *call, const struct reflection *r,
			 response *res, struct err *err)
{
	Grpc__Reflection__V1__ListServiceResponse body =
		GRPC__REFLECTION__V1__LIST_SERVICE_RESPONSE__INIT;
	int rc;

	body.service = message_list(&grpc__reflection__v1__service_response__descriptor,
				    r->symbols.n);
	for (size_t i = 0; i < r->symbols.n; i++) {
		if (r->symbols.v[i].kind == SERVICE) {
			body.service[body.n_service++]->name = r->symbols.v[i].name;
		}
	}
	res->message_response_case = ANSWER(LIST_SERVICES_RESPONSE);
	res->list_services_response = &body;
	rc = rpc_send(call, &res->base, err);
	free(body.service);
	return rc;
}

static int send_error(struct rpc_call *call, enum rpc_status code,
		      const char *text, response *res, struct err *err)
{
	Grpc__Reflection__V1__ErrorResponse body = GRPC__REFLECTION__V1__ERROR_RESPONSE__INIT;

	body.error_code = (int32_t)code;
	body.error_message = (char *)text;
	res->message_response_case = ANSWER(ERROR_RESPONSE);
	res->error_response = &body;
	return rpc_send(call, &res->base, err);
}

/* proto3 has no extensions: a type that exists has none. */
static int send_extensions(struct rpc_call *call, char *type, response *res, struct err *err)
{
	Grpc__Reflection__V1__ExtensionNumberResponse body =
		GRPC__REFLECTION__V1__EXTENSION_NUMBER_RESPONSE__INIT;

	body.base_type_name = type;
	res->message_response_case = ANSWER(ALL_EXTENSION_NUMBERS_RESPONSE);
	res->all_extension_numbers_response = &body;
	return rpc_send(call, &res->base, err);
}

/* One response for one request; an error only if it cannot be sent. */
static int answer(struct rpc_call *call, const struct reflection *r, request *req, struct err *err)
{
	response res = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
	const struct symbol *s = NULL;
	size_t file = r->set->n_file;

	res.valid_host = req->host;
	res.original_request = req;
	switch (req->message_request_case) {
	case QUESTION(LIST_SERVICES):
		return send_services(call, r, &res, err);
	case QUESTION(FILE_BY_FILENAME):
		file = find_file(r, req->file_by_filename);
		break;
	case QUESTION(FILE_CONTAINING_SYMBOL):
		s = find_symbol(r, req->file_containing_symbol);
		file = s ? s->file : file;
		break;
	case QUESTION(ALL_EXTENSION_NUMBERS_OF_TYPE):
		s = find_symbol(r, req->all_extension_numbers_of_type);
		if (s && s->kind == MESSAGE) {
			return send_extensions(call, s->name, &res, err);
		}
		break;
	case QUESTION(FILE_CONTAINING_EXTENSION):
		break;
	default:
		return send_error(call, RPC_INVALID_ARGUMENT,
				  "the request names nothing", &res, err);
	}
	if (file == r->set->n_file) {
		return send_error(call, RPC_NOT_FOUND,
				  "no such file, symbol or extension", &res,
				  err);
	}
	return send_file(call, r, file, &res, err);
}

void handle_reflection(struct rpc_call *call, const ProtobufCMessage *req, void *arg)
{
	struct reflection *r = arg;
	struct err err = { 0 };
	int rc = 0;

	if (!req) {
		rpc_finish(call, RPC_OK, NULL);
		return;
	}
	if (!r->indexed && (rc = reflection_load(r, &err))) {
		reflection_reset(r);
	}
	if (rc == 0) {
		rc = answer(call, r, (request *)req, &err);
	}
	if (rc) {
		rpc_finish_err(call, &err);
	}
}
