/* One of each kind of part that the headers of a minor version have: an operation with a kernel,
 * and since 1.1 a device, 1.2 a pass, a transport, a table and a reader, 1.3 a compiler, 1.4 a
 * stream and options, 1.5 rules in C. It is built with the frozen headers of each version, and with
 * today's for that version. */

#include <paddle/plugin/plugin.h>

#include <stdlib.h>
#include <string.h>

PADDLE_PLUGIN_NOTE(NAME, "1.0.0");

#define MINOR PADDLE_PLUGIN_TARGET_MINOR

static const paddle_host* the_host;

/* --- an operation with a kernel --- */

static paddle_status run_twice(const void* state, const paddle_run* run) {
  (void)state;
  const float* const x = run->operands[0];
  float* const out = run->results[0];
  for (int i = 0; i < 4; ++i) out[i] = 2 * x[i];
  return PADDLE_OK;
}

static paddle_status prepare_twice(paddle_call* call, const paddle_request* request,
                                   paddle_instance* instance) {
  (void)call;
  if (request->operands[0]->rank != 1 || request->operands[0]->shape[0] != 4)
    return PADDLE_DECLINED;
  instance->run = run_twice;
  instance->implementation = NAME ":four";
  return PADDLE_OK;
}

static const paddle_kernel kernel = {sizeof kernel, NAME ".twice", "cpu", "float32", prepare_twice};
static const paddle_kernel* const kernels[] = {&kernel};

#if MINOR >= 5
static paddle_status infer_half(paddle_call* call, const paddle_request* request) {
  const paddle_types_functions* const types = the_host->table(PADDLE_TYPES, 1);
  const paddle_dim two = types->constant(call, 2);
  const paddle_dim size =
      types->floor_divide(call, types->multiply(call, types->operand_dim(call, 0, 0), two), two);
  return types->result(call, request->operands[0]->dtype, &size, 1);
}
static paddle_status decompose_half(paddle_call* call, const paddle_request* request) {
  (void)request;
  const paddle_build_functions* const build = the_host->table(PADDLE_BUILD, 1);
  return build->give(call, build->expression(call, "x * 0.5", NULL, NULL, 0));
}
static const paddle_rules half = {.struct_size = sizeof half,
                                  .operation = "half",
                                  .infer = infer_half,
                                  .decompose = decompose_half};
static const paddle_rules* const rules[] = {&half};
#define HALF \
  "half: {signature: '(x) -> out', doc: a half., dtypes: {x: float}, samples: ['x=f64[4]']}\n"
#else
#define HALF ""
#endif
static const paddle_operation operation = {
    .struct_size = sizeof operation,
    .schema = "twice: {signature: '(x:T) -> out', doc: twice x., body: x + x}\n" HALF,
#if MINOR >= 5
    .rule_count = 1,
    .rules = rules,
#endif
};
static const paddle_operation* const operations[] = {&operation};

/* --- a device whose memory is the host's, and whose streams do everything at once --- */

#if MINOR >= 1
static int one(void) { return 1; }
static int memory_info(int device, size_t* available, size_t* total) {
  (void)device;
  *available = *total = (size_t)1 << 30;
  return 0;
}
static int allocate(int device, size_t bytes, void** memory) {
  (void)device;
  *memory = aligned_alloc(256, (bytes + 256) / 256 * 256);
  return *memory ? 0 : PADDLE_DEVICE;
}
static int release(int device, void* memory) {
  (void)device;
  free(memory);
  return 0;
}
static int create_stream(int device, paddle_stream* stream) {
  (void)device;
  *stream = malloc(1);
  return 0;
}
static int destroy_stream(paddle_stream stream) {
  free(stream);
  return 0;
}
static int synchronize_stream(paddle_stream stream) {
  (void)stream;
  return 0;
}
static int create_event(int device, paddle_event* event) {
  (void)device;
  *event = malloc(1);
  return 0;
}
static int destroy_event(paddle_event event) {
  free(event);
  return 0;
}
static int record_event(paddle_event event, paddle_stream stream) {
  (void)event, (void)stream;
  return 0;
}
static int wait_event(paddle_stream stream, paddle_event event) {
  (void)event, (void)stream;
  return 0;
}
static int synchronize_event(paddle_event event) {
  (void)event;
  return 0;
}
static int copy(paddle_stream stream, void* to, const void* from, size_t bytes, int kind) {
  (void)stream, (void)kind;
  memmove(to, from, bytes);
  return 0;
}
static int fill(paddle_stream stream, void* to, int byte, size_t bytes) {
  (void)stream;
  memset(to, byte, bytes);
  return 0;
}
static const char* last_error(void) { return "out of memory"; }
static const char* last_error_location(void) { return ""; }
static int properties(int device, paddle_device_properties* out) {
  (void)device;
  const paddle_device_properties all = {
      .struct_size = out->struct_size, .name = NAME, .memory = (size_t)1 << 30, .alignment = 256};
  memcpy(out, &all, out->struct_size < sizeof all ? out->struct_size : sizeof all);
  return 0;
}
static const paddle_device_api device = {.struct_size = sizeof device,
                                         .version = PADDLE_DEVICE_API_VERSION,
                                         .name = NAME,
                                         .device_count = one,
                                         .memory_info = memory_info,
                                         .allocate = allocate,
                                         .release = release,
                                         .create_stream = create_stream,
                                         .destroy_stream = destroy_stream,
                                         .synchronize_stream = synchronize_stream,
                                         .create_event = create_event,
                                         .destroy_event = destroy_event,
                                         .record_event = record_event,
                                         .wait_event = wait_event,
                                         .synchronize_event = synchronize_event,
                                         .copy = copy,
                                         .fill = fill,
                                         .last_error = last_error,
                                         .last_error_location = last_error_location,
                                         .properties = properties};
static const paddle_device_api* const devices[] = {&device};
#endif

/* --- a pass, a transport of one rank, a table, a reader of five samples --- */

#if MINOR >= 2
static int passes_run;
static paddle_status run_pass(paddle_call* call, const char* module) {
  the_host->write(call, module); /* the same */
  ++passes_run;
  return PADDLE_OK;
}
static const paddle_pass pass = {.struct_size = sizeof pass,
                                 .stage = PADDLE_STAGE_CANONICALIZE,
                                 .name = "same",
                                 .flags = PADDLE_PASS_KEEPS_BITS,
                                 .run = run_pass};
static const paddle_pass* const passes[] = {&pass};

struct mail {
  uint32_t tag;
  size_t size;
  char bytes[64];
};
static paddle_status open_transport(paddle_call* call, const paddle_rank* rank, void** state) {
  if (rank->size > 1) return the_host->fail(call, PADDLE_USAGE, "for one rank");
  *state = calloc(1, sizeof(struct mail));
  return *state ? PADDLE_OK : PADDLE_DEVICE;
}
static paddle_status exchange(void* state, paddle_call* call, uint32_t kind,
                              const paddle_message* const* sends, uint32_t send_count,
                              const paddle_message* const* receives, uint32_t receive_count) {
  (void)state, (void)kind, (void)sends, (void)receives;
  return send_count + receive_count == 0
             ? PADDLE_OK
             : the_host->fail(call, PADDLE_USAGE, "there is no other rank");
}
static paddle_status post(void* state, paddle_call* call, int32_t peer, uint32_t tag,
                          const void* bytes, size_t size) {
  struct mail* const mail = state;
  (void)peer;
  if (size > sizeof mail->bytes) return the_host->fail(call, PADDLE_USAGE, "too long");
  mail->tag = tag, mail->size = size;
  memcpy(mail->bytes, bytes, size);
  return PADDLE_OK;
}
static paddle_status take(void* state, paddle_call* call, int32_t peer, uint32_t tag, void* bytes,
                          size_t size) {
  const struct mail* const mail = state;
  (void)peer;
  if (mail->tag != tag || mail->size != size)
    return the_host->fail(call, PADDLE_INTERNAL, "another message");
  memcpy(bytes, mail->bytes, size);
  return PADDLE_OK;
}
static void abort_transport(void* state, const char* reason) { (void)state, (void)reason; }
static const paddle_transport transport = {.struct_size = sizeof transport,
                                           .name = "alone",
                                           .open = open_transport,
                                           .exchange = exchange,
                                           .post = post,
                                           .take = take,
                                           .abort = abort_transport,
                                           .close = free};
static const paddle_transport* const transports[] = {&transport};

/* Records in rising order of unsigned keys, each in a block of its own. */
struct table {
  const paddle_table_spec* spec;
  size_t count;
  uint64_t* keys;
  void** records;
};
static paddle_status open_table(paddle_call* call, const paddle_table_spec* spec, void** state) {
  (void)call;
  struct table* const t = calloc(1, sizeof *t);
  if (!t) return PADDLE_DEVICE;
  t->spec = spec;
  *state = t;
  return PADDLE_OK;
}
static int64_t count_rows(void* state) { return (int64_t)((struct table*)state)->count; }
static int is_before(const struct table* t, uint64_t a, uint64_t b) {
  return t->spec->key_dtype == PADDLE_INT64 ? (int64_t)a < (int64_t)b : a < b;
}
static size_t place_of(const struct table* t, uint64_t key) {
  size_t at = 0;
  while (at < t->count && is_before(t, t->keys[at], key)) ++at;
  return at;
}
static paddle_status read_rows(void* state, paddle_call* call, const uint64_t* keys, size_t count,
                               int32_t missing, void* rows) {
  struct table* const t = state;
  const paddle_records* const functions = the_host->table(PADDLE_RECORDS, 1);
  (void)call;
  for (size_t i = 0; i < count; ++i) {
    char* const row = (char*)rows + i * t->spec->row_bytes;
    const size_t at = place_of(t, keys[i]);
    if (at < t->count && t->keys[at] == keys[i])
      memcpy(row, t->records[at], t->spec->row_bytes);
    else if (missing == PADDLE_MISSING_INITIAL)
      functions->initial_row(t->spec, keys[i], row);
    else
      memset(row, 0, t->spec->row_bytes);
  }
  return PADDLE_OK;
}
static paddle_status update_rows(void* state, paddle_call* call, const uint64_t* keys, size_t count,
                                 const void* gradients, const void* inputs) {
  struct table* const t = state;
  const paddle_records* const functions = the_host->table(PADDLE_RECORDS, 1);
  for (size_t i = 0; i < count; ++i) {
    const paddle_status status =
        functions->apply_update(t->spec, call, &t->records[place_of(t, keys[i])],
                                (const char*)gradients + i * t->spec->row_bytes, 1, inputs);
    if (status != PADDLE_OK) return status;
  }
  return PADDLE_OK;
}
static paddle_status content(void* state, paddle_call* call, paddle_record_visitor visitor,
                             void* context) {
  struct table* const t = state;
  (void)call;
  return t->count == 0 ? PADDLE_OK
                       : visitor(context, t->keys, (const void* const*)t->records, t->count);
}
static paddle_status restore(void* state, paddle_call* call, const uint64_t* keys,
                             const void* records, size_t count) {
  struct table* const t = state;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = place_of(t, keys[i]);
    if (at < t->count && t->keys[at] == keys[i]) continue;
    void* const record = malloc(t->spec->record_bytes);
    uint64_t* const more_keys = realloc(t->keys, (t->count + 1) * sizeof *t->keys);
    if (more_keys) t->keys = more_keys;
    void** const more = realloc(t->records, (t->count + 1) * sizeof *t->records);
    if (more) t->records = more;
    if (!record || !more_keys || !more) return the_host->fail(call, PADDLE_DEVICE, "out of memory");
    memcpy(record, (const char*)records + i * t->spec->record_bytes, t->spec->record_bytes);
    memmove(t->keys + at + 1, t->keys + at, (t->count - at) * sizeof *t->keys);
    memmove(t->records + at + 1, t->records + at, (t->count - at) * sizeof *t->records);
    t->keys[at] = keys[i];
    t->records[at] = record;
    ++t->count;
  }
  return PADDLE_OK;
}
static void close_table(void* state) {
  struct table* const t = state;
  for (size_t i = 0; i < t->count; ++i) free(t->records[i]);
  free(t->records);
  free(t->keys);
  free(t);
}
static const paddle_table table = {.struct_size = sizeof table,
                                   .name = "rows",
                                   .open = open_table,
                                   .count = count_rows,
                                   .read = read_rows,
                                   .update = update_rows,
                                   .content = content,
                                   .restore = restore,
                                   .close = close_table};
static const paddle_table* const tables[] = {&table};

static int opened;
static paddle_status open_reader(paddle_call* call, const paddle_options* options, void** state) {
  (void)call, (void)options;
  *state = calloc(1, sizeof(int64_t)); /* of a stream: the next sample */
  ++opened;
  return *state ? PADDLE_OK : PADDLE_DEVICE;
}
static const char* describe(void* state) {
  (void)state;
  return "x: int64[2]";
}
static int64_t five(void* state) {
  (void)state;
  return 5;
}
static paddle_status fill_sample(const paddle_sample* sample, int64_t index) {
  const int64_t shape[] = {2};
  int64_t* const x = sample->field(sample->context, 0, shape, 1);
  if (!x) return PADDLE_DATA;
  x[0] = index, x[1] = 10 * index;
  return PADDLE_OK;
}
static paddle_status read_sample(void* state, paddle_call* call, int64_t index, uint64_t seed,
                                 uint64_t epoch, const paddle_sample* sample) {
  (void)state, (void)call, (void)seed, (void)epoch;
  return fill_sample(sample, index);
}
static const paddle_reader reader = {.struct_size = sizeof reader,
                                     .name = "numbers",
                                     .open = open_reader,
                                     .describe = describe,
                                     .size = five,
                                     .read = read_sample,
                                     .close = free};
#if MINOR >= 4
static paddle_status next_sample(void* state, paddle_call* call, const paddle_sample* sample) {
  int64_t* const next = state;
  (void)call;
  return *next == 5 ? PADDLE_DECLINED : fill_sample(sample, (*next)++);
}
static const paddle_reader stream = {.struct_size = sizeof stream,
                                     .name = "stream",
                                     .open = open_reader,
                                     .describe = describe,
                                     .close = free,
                                     .next = next_sample};
static const paddle_reader* const readers[] = {&reader, &stream};
#else
static const paddle_reader* const readers[] = {&reader};
#endif
#endif

/* --- a compiler of sums --- */

#if MINOR >= 3
static paddle_status supports(paddle_call* call, const char* name, const paddle_request* request) {
  (void)call;
  if (strcmp(name, "add") != 0) return PADDLE_DECLINED;
  const paddle_view *x = request->operands[0], *y = request->operands[1];
  if (x->dtype != PADDLE_FLOAT32 || y->dtype != PADDLE_FLOAT32 || x->rank != 1 || y->rank != 1 ||
      x->shape[0] != y->shape[0])
    return PADDLE_DECLINED;
  return PADDLE_OK;
}
static paddle_status run_sum(const void* state, const paddle_run* run) {
  const int64_t count = *(const int64_t*)state;
  const float *x = run->operands[0], *y = run->operands[1];
  float* const out = run->results[0];
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] + y[i];
  return PADDLE_OK;
}
static paddle_status compile(paddle_call* call, const paddle_region* region,
                             paddle_instance* instance) {
  (void)call;
  if (region->node_count != 1 || region->operand_count != 2 || region->nodes[0]->operands[0] != 0 ||
      region->nodes[0]->operands[1] != 1)
    return PADDLE_DECLINED;
  int64_t* const count = malloc(sizeof *count);
  if (!count) return PADDLE_DEVICE;
  *count = region->values[0]->shape[0];
  instance->state = count;
  instance->destroy = free;
  instance->run = run_sum;
  instance->implementation = NAME ":sum";
  return PADDLE_OK;
}
static const paddle_compiler compiler = {.struct_size = sizeof compiler,
                                         .flags = PADDLE_COMPILER_KEEPS_BITS,
                                         .name = "sums",
                                         .device = "cpu",
                                         .supports = supports,
                                         .compile = compile};
static const paddle_compiler* const compilers[] = {&compiler};
#endif

#if MINOR >= 4
static paddle_status start_with(const paddle_host* host, const paddle_options* options,
                                paddle_call* call) {
  if (options->count == 1 && strcmp(options->names[0], "window") == 0 &&
      strcmp(options->values[0], "4") == 0)
    return PADDLE_OK;
  return host->fail(call, PADDLE_CONFIG, "other options");
}
#endif

PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host* host,
                                                      paddle_plugin* plugin) {
  the_host = host;
  plugin->needs_minor = MINOR;
  plugin->name = NAME;
  plugin->version = "1.0.0";
  plugin->operation_count = 1;
  plugin->operations = operations;
  plugin->kernel_count = 1;
  plugin->kernels = kernels;
#if MINOR >= 1
  plugin->device_count = 1;
  plugin->devices = devices;
#endif
#if MINOR >= 2
  plugin->transport_count = plugin->table_count = plugin->pass_count = 1;
  plugin->transports = transports;
  plugin->tables = tables;
  plugin->passes = passes;
  plugin->reader_count = sizeof readers / sizeof readers[0];
  plugin->readers = readers;
#endif
#if MINOR >= 3
  plugin->compiler_count = 1;
  plugin->compilers = compilers;
#endif
#if MINOR >= 4
  plugin->keys = "window: {type: integer, default: 4, doc: a number}";
  plugin->start_with = start_with;
#endif
  return host->struct_size >= sizeof *host ? PADDLE_OK : PADDLE_INTERNAL;
}
