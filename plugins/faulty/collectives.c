/* The collective operations of plugins/relay_ranks with a fault: what `paddle plugin check` has to
 * find (faults.txt). */

#define paddle_plugin_main relay_ranks_main
#include "../relay_ranks/relay_ranks.c"
#undef paddle_plugin_main

#include <unistd.h>

static const char* fault = "";
static int fault_is(const char* name) { return strcmp(fault, name) == 0; }

/* --- messages --- */

static const paddle_ranks_functions* right_ranks;
static paddle_ranks_functions faulty_ranks;

static paddle_status gather_forever(paddle_call* call, const int32_t* group, uint32_t count,
                                    const void* in, const size_t* bytes, void* out) {
  const paddle_status status = right_ranks->gather(call, group, count, in, bytes, out);
  while (status == PADDLE_PEER) pause();
  return status;
}
/* The parts of the ranks, the own one first. */
static paddle_status gather_own_first(paddle_call* call, const int32_t* group, uint32_t count,
                                      const void* in, const size_t* bytes, void* out) {
  const paddle_status status = right_ranks->gather(call, group, count, in, bytes, out);
  if (status != PADDLE_OK || bytes[0] == 0) return status;
  char* const all = malloc(count * bytes[0]);
  if (!all) return PADDLE_DEVICE;
  uint32_t own = 0;
  while (group[own] != right_ranks->rank(call)) ++own;
  for (uint32_t i = 0; i < count; ++i)
    memcpy(all + i * bytes[0], (char*)out + (own + i) % count * bytes[0], bytes[0]);
  memcpy(out, all, count * bytes[0]);
  free(all);
  return status;
}

/* --- kernels --- */

static paddle_status run_unwritten(const void* state, const paddle_run* run) {
  const struct collective* const c = state;
  void* results[MOST_TENSORS];
  for (uint32_t i = 0; i < c->tensors; ++i)
    results[i] = calloc((size_t)c->sizes[i] + 1, item_size(c->dtype));
  paddle_run elsewhere = *run;
  elsewhere.results = results;
  const paddle_status status = run_all_reduce(state, &elsewhere);
  for (uint32_t i = 0; i < c->tensors; ++i) free(results[i]);
  return status;
}
static paddle_status run_touching(const void* state, const paddle_run* run) {
  const struct collective* const c = state;
  const paddle_status status = run_all_reduce(state, run);
  for (uint32_t i = 0; i < c->tensors; ++i)
    memcpy(to_real(run->operands[i]), to_real(run->results[i]),
           (size_t)c->sizes[i] * item_size(c->dtype));
  return status;
}
static paddle_status run_first_of_list(const void* state, const paddle_run* run) {
  struct collective first = *(const struct collective*)state;
  const uint32_t tensors = first.tensors;
  first.tensors = 1;
  const paddle_status status = run_all_reduce(&first, run);
  for (uint32_t i = 1; i < tensors; ++i)
    memcpy(to_real(run->results[i]), to_real(run->operands[i]),
           (size_t)first.sizes[i] * item_size(first.dtype));
  return status;
}
/* Ranks with operands of different sizes: as many elements as all have. */
static paddle_status run_smallest(const void* state, const paddle_run* run) {
  struct collective common = *(const struct collective*)state;
  int64_t sizes[MOST_RANKS];
  size_t bytes[MOST_RANKS];
  for (uint32_t i = 0; i < common.count; ++i) bytes[i] = sizeof *sizes;
  const paddle_status status =
      ranks->gather(run->call, common.group, common.count, common.sizes, bytes, sizes);
  if (status != PADDLE_OK) return status;
  for (uint32_t i = 0; i < common.count; ++i)
    if (sizes[i] < common.sizes[0]) common.sizes[0] = sizes[i];
  return run_all_reduce(&common, run);
}
static paddle_status prepare_faulty(paddle_call* call, const paddle_request* request,
                                    paddle_instance* instance) {
  const paddle_status status = prepare_all_reduce(call, request, instance);
  if (status != PADDLE_OK) return status;
  struct collective* const c = instance->state;
  if (fault_is("reduced_unwritten")) instance->run = run_unwritten;
  if (fault_is("reduced_operand")) instance->run = run_touching;
  if (fault_is("smallest_of_sizes")) instance->run = run_smallest;
  if (fault_is("first_of_list")) instance->run = run_first_of_list;
  if (fault_is("sum_of_integers") && (c->dtype == PADDLE_INT32 || c->dtype == PADDLE_INT64))
    c->reduction = SUM;
  return status;
}

static const paddle_kernel faulty_reduce = {sizeof add, "comm.all_reduce", NAME, NULL,
                                            prepare_faulty};
static const paddle_kernel* const faulty_kernels[] = {
    &add, &multiply, &relu, &matmul, &embedding, &faulty_reduce, &reduce_scatter};

PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host* from,
                                                      paddle_plugin* plugin) {
  const paddle_status status = relay_ranks_main(from, plugin);
  if (status != PADDLE_OK) return status;
  if (getenv("FAULT")) fault = getenv("FAULT");
  plugin->kernels = faulty_kernels;
  right_ranks = ranks;
  faulty_ranks = *ranks;
  ranks = &faulty_ranks;
  if (fault_is("lost_rank_hangs")) faulty_ranks.gather = gather_forever;
  if (fault_is("own_rank_first")) faulty_ranks.gather = gather_own_first;
  return status;
}
