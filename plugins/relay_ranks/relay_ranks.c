/* The device of plugins/relay with collective operations of its own: sums over ranks are made on
 * the device, in the order of the ranks, so that all ranks have the same bits. Operations that it
 * leaves out go over the host.
 *
 *   paddle plugin build plugins/relay_ranks/relay_ranks.c -o relay.so
 *   paddle plugin check relay.so --group collectives
 */

#pragma push_macro("paddle_plugin_main")
#undef paddle_plugin_main
#define paddle_plugin_main relay_main
#include "../relay/relay.c"
#pragma pop_macro("paddle_plugin_main")

enum { MOST_RANKS = 64, MOST_TENSORS = 64 };
static const paddle_ranks_functions* ranks;

enum reduction { SUM, MAX, MIN };

/* A reduction over a group. Sizes are in elements. */
struct collective {
  int32_t group[MOST_RANKS];
  uint32_t count; /* of the group */
  uint32_t position;
  enum reduction reduction;
  paddle_dtype dtype;
  uint32_t tensors;
  int64_t sizes[MOST_TENSORS];
  int64_t first, own; /* the part of this rank of a reduce-scatter */
};

static size_t item_size(paddle_dtype dtype) {
  return dtype == PADDLE_FLOAT64 || dtype == PADDLE_INT64 ? 8 : 4;
}

#define REDUCE(type)                                                                          \
  do {                                                                                        \
    type* const to = out;                                                                     \
    const type* const from = in;                                                              \
    for (int64_t i = 0; i < count; ++i)                                                       \
      to[i] = reduction == SUM   ? (type)(to[i] + from[i])                                    \
              : reduction == MAX ? (from[i] > to[i] || from[i] != from[i] ? from[i] : to[i])  \
                                 : (from[i] < to[i] || from[i] != from[i] ? from[i] : to[i]); \
  } while (0)

/* Whole numbers are added without signs: they overflow as those of the engine do. */
static void reduce(void* out, const void* in, int64_t count, paddle_dtype dtype,
                   enum reduction reduction) {
  if (dtype == PADDLE_FLOAT32) REDUCE(float);
  if (dtype == PADDLE_FLOAT64) REDUCE(double);
  if (dtype == PADDLE_INT32 && reduction == SUM) REDUCE(uint32_t);
  if (dtype == PADDLE_INT64 && reduction == SUM) REDUCE(uint64_t);
  if (dtype == PADDLE_INT32 && reduction != SUM) REDUCE(int32_t);
  if (dtype == PADDLE_INT64 && reduction != SUM) REDUCE(int64_t);
}

/* Gets `bytes` of each rank into scratch memory, one after another. */
static paddle_status gather(const struct collective* c, const paddle_run* run, const void* in,
                            size_t bytes, char* parts) {
  size_t sizes[MOST_RANKS];
  for (uint32_t i = 0; i < c->count; ++i) sizes[i] = bytes;
  return ranks->gather(run->call, c->group, c->count, in, sizes, parts);
}

/* Waits for what is queued: operands are made by it. */
static paddle_status wait_for(const paddle_run* run) {
  const int status = synchronize_stream(run->stream);
  return status ? host->fail(run->call, status, error_text) : PADDLE_OK;
}

static paddle_status run_all_reduce(const void* state, const paddle_run* run) {
  const struct collective* const c = state;
  paddle_status status = wait_for(run);
  char* const parts = to_real(run->scratch);
  for (uint32_t t = 0; t < c->tensors && status == PADDLE_OK; ++t) {
    const size_t bytes = (size_t)c->sizes[t] * item_size(c->dtype);
    status = gather(c, run, to_real(run->operands[t]), bytes, parts);
    if (status != PADDLE_OK) break;
    char* const out = to_real(run->results[t]);
    if (bytes > 0) memcpy(out, parts, bytes);
    for (uint32_t i = 1; i < c->count; ++i)
      reduce(out, parts + i * bytes, c->sizes[t], c->dtype, c->reduction);
  }
  return status;
}

static paddle_status run_reduce_scatter(const void* state, const paddle_run* run) {
  const struct collective* const c = state;
  paddle_status status = wait_for(run);
  if (status != PADDLE_OK) return status;
  char* const parts = to_real(run->scratch);
  const size_t item = item_size(c->dtype), bytes = (size_t)c->sizes[0] * item;
  const size_t skipped = (size_t)c->first * item;
  status = gather(c, run, to_real(run->operands[0]), bytes, parts);
  if (status != PADDLE_OK || c->own == 0) return status;
  char* const out = to_real(run->results[0]);
  memcpy(out, parts + skipped, (size_t)c->own * item);
  for (uint32_t i = 1; i < c->count; ++i)
    reduce(out, parts + i * bytes + skipped, c->own, c->dtype, c->reduction);
  return PADDLE_OK;
}

/* Group, reduction and sizes; not 0 for what is left to the host. */
static int read_collective(const paddle_request* request, struct collective* c) {
  const int64_t* group;
  const size_t count = host->attr_ints(request, host->attr_index(request, "ranks"), &group);
  const char* const word = host->attr_text(request, host->attr_index(request, "reduction"));
  if (count < 2 || count > MOST_RANKS || request->operand_count > MOST_TENSORS) return 1;
  for (size_t i = 0; i < count; ++i) c->group[i] = (int32_t)group[i];
  c->count = (uint32_t)count;
  c->reduction = word && !strcmp(word, "max") ? MAX : word && !strcmp(word, "min") ? MIN : SUM;
  c->dtype = request->operands[0]->dtype;
  if (c->dtype != PADDLE_FLOAT32 && c->dtype != PADDLE_FLOAT64 && c->dtype != PADDLE_INT32 &&
      c->dtype != PADDLE_INT64)
    return 1;
  c->tensors = request->operand_count;
  for (uint32_t i = 0; i < c->tensors; ++i)
    if ((c->sizes[i] = packed_count(request->operands[i])) < 0) return 1;
  return 0;
}

static paddle_status keep(paddle_instance* instance, const struct collective* c, const char* name,
                          paddle_status (*run)(const void* state, const paddle_run* run)) {
  struct collective* const kept = malloc(sizeof *kept);
  if (!kept) return PADDLE_DECLINED;
  *kept = *c;
  int64_t most = 0;
  for (uint32_t i = 0; i < c->tensors; ++i)
    if (c->sizes[i] > most) most = c->sizes[i];
  instance->state = kept;
  instance->destroy = free;
  instance->run = run;
  instance->scratch_bytes = c->count * (size_t)most * item_size(c->dtype);
  instance->implementation = name;
  instance->flags = PADDLE_INSTANCE_NOT_CAPTURABLE; /* it waits */
  return PADDLE_OK;
}

static paddle_status prepare_all_reduce(paddle_call* call, const paddle_request* request,
                                        paddle_instance* instance) {
  (void)call;
  struct collective c = {.count = 0};
  if (read_collective(request, &c)) return PADDLE_DECLINED;
  return keep(instance, &c, NAME ":all_reduce", run_all_reduce);
}

/* Along the first axis, where the parts of the ranks are contiguous. */
static paddle_status prepare_reduce_scatter(paddle_call* call, const paddle_request* request,
                                            paddle_instance* instance) {
  (void)call;
  struct collective c = {.count = 0};
  const int64_t* rows;
  const size_t parts = host->attr_ints(request, host->attr_index(request, "sizes"), &rows);
  const int64_t position = host->attr_int(request, host->attr_index(request, "position"));
  if (read_collective(request, &c) || parts != c.count || position < 0 ||
      position >= (int64_t)c.count ||
      host->attr_int(request, host->attr_index(request, "axis")) != 0)
    return PADDLE_DECLINED;
  const paddle_view* const x = request->operands[0];
  int64_t width = 1;
  for (int32_t i = 1; i < x->rank; ++i) width *= x->shape[i];
  for (int64_t i = 0; i < position; ++i) c.first += rows[i] * width;
  c.own = rows[position] * width;
  return keep(instance, &c, NAME ":reduce_scatter", run_reduce_scatter);
}

static const paddle_kernel all_reduce = {sizeof add, "comm.all_reduce", NAME, NULL,
                                         prepare_all_reduce};
static const paddle_kernel reduce_scatter = {sizeof add, "comm.reduce_scatter", NAME, NULL,
                                             prepare_reduce_scatter};
static const paddle_kernel* const kernels_of_ranks[] = {
    &add, &multiply, &relu, &matmul, &embedding, &all_reduce, &reduce_scatter};

PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host* from,
                                                      paddle_plugin* plugin) {
  const paddle_status status = relay_main(from, plugin);
  ranks = from->table(PADDLE_RANKS, 1);
  if (status != PADDLE_OK || !ranks) return PADDLE_USAGE;
  plugin->needs_minor = 5;
  plugin->kernel_count = sizeof kernels_of_ranks / sizeof kernels_of_ranks[0];
  plugin->kernels = kernels_of_ranks;
  return PADDLE_OK;
}
