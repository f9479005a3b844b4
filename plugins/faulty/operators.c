/* Operations with kernels for the CPU, in plain C, with a fault: what `paddle plugin check` has to
 * find (faults.txt). */

#define _POSIX_C_SOURCE 200809L

#include <paddle/plugin/plugin.h>

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

PADDLE_PLUGIN_NOTE("faulty", "1.0.0");

static const paddle_host* host;
static const char* fault = "";
static int fault_is(const char* name) { return strcmp(fault, name) == 0; }

/* Rows and columns of the first operand, and an attribute. */
struct state {
  int64_t rows, columns;
  double scale;
  uint32_t threads;
};

static void* volatile lost;

static int64_t count_of(const struct state* s) { return s->rows * s->columns; }

/* x * scale + y */
static paddle_status run_scale_add(const void* state, const paddle_run* run) {
  const struct state* const s = state;
  float* const x = (float*)(uintptr_t)run->operands[0];
  const float* const y = run->operands[1];
  float* const out = run->results[0];
  const int64_t n = count_of(s), end = fault_is("tail_unwritten") ? n / 8 * 8 : n;
  const float scale = (float)s->scale;
  if (fault_is("not_in_place")) {
    for (int64_t i = 0; i < n; ++i) out[i] = y[i];
    for (int64_t i = 0; i < n; ++i) out[i] += x[i] * scale;
    return PADDLE_OK;
  }
  if (fault_is("memory_of_runs")) lost = malloc(100);
  for (int64_t i = 0; i < end; ++i) out[i] = x[i] * scale + y[i];
  if (fault_is("beyond_end")) out[n] = 0;
  if (fault_is("operand_written") && n > 0) x[n - 1] = 0;
  return PADDLE_OK;
}

/* The sum of each row. */
static paddle_status run_row_sum(const void* state, const paddle_run* run) {
  const struct state* const s = state;
  const float* const x = run->operands[0];
  float* const out = run->results[0];
  double* const sums = run->scratch;
  static double shared[4096];
  if (fault_is("empty_unwritten") && s->columns == 0) return PADDLE_OK;
  if (fault_is("sum_by_thread")) {
    const int64_t step = s->columns / host->thread_count() + 1;
    for (int64_t i = 0; i < s->rows; ++i) {
      out[i] = 0;
      for (int64_t begin = 0; begin < s->columns; begin += step) {
        float part = 0;
        for (int64_t j = begin; j < begin + step && j < s->columns; ++j)
          part += x[i * s->columns + j];
        out[i] += part;
      }
    }
    return PADDLE_OK;
  }
  double* const to = fault_is("shared_state") && s->rows < 4096 ? shared : sums;
  for (int64_t i = 0; i < s->rows; ++i) {
    if (!fault_is("unset_scratch")) to[i] = 0;
    for (int64_t j = 0; j < s->columns; ++j) to[i] += x[i * s->columns + j];
    if (to == shared) sched_yield();
  }
  for (int64_t i = 0; i < s->rows; ++i) out[i] = (float)to[i];
  return PADDLE_OK;
}

/* The place of the largest element of each row: the first of equal ones. */
static paddle_status run_row_best(const void* state, const paddle_run* run) {
  const struct state* const s = state;
  const float* const x = run->operands[0];
  int64_t* const out = run->results[0];
  for (int64_t i = 0; i < s->rows; ++i) {
    const float* const row = x + i * s->columns;
    int64_t best = 0;
    for (int64_t j = 1; j < s->columns; ++j)
      if (row[j] > row[best] || (row[j] != row[j] && row[best] == row[best]) ||
          (fault_is("last_of_equal") && row[j] == row[best]))
        best = j;
    out[i] = best;
  }
  return PADDLE_OK;
}

/* x / (y * y + 1) */
static paddle_status run_ratio(const void* state, const paddle_run* run) {
  const struct state* const s = state;
  const float *x = run->operands[0], *y = run->operands[1];
  float* const out = run->results[0];
  for (int64_t i = 0; i < count_of(s); ++i) {
    float quotient = 1.0F / (y[i] * y[i] + 1.0F);
    if (fault_is("coarse_quotient")) {
      uint32_t bits;
      memcpy(&bits, &quotient, sizeof bits);
      bits &= 0xFFFFF000U; /* 12 bits of the fraction, as fast reciprocals have */
      memcpy(&quotient, &bits, sizeof bits);
    }
    out[i] = x[i] * quotient;
  }
  return PADDLE_OK;
}

/* x + 1 */
static paddle_status run_next(const void* state, const paddle_run* run) {
  const struct state* const s = state;
  const int64_t* const x = run->operands[0];
  int64_t* const out = run->results[0];
  for (int64_t i = 0; i < count_of(s); ++i)
    out[i] = fault_is("through_double") ? (int64_t)((double)x[i] + 1) : x[i] + 1;
  return PADDLE_OK;
}

static int is_packed(const paddle_view* view) {
  int64_t count = 1;
  int packed = 1;
  for (int32_t i = view->rank; i-- > 0;) {
    if (view->shape[i] != 1 && view->strides[i] != count) packed = 0;
    count *= view->shape[i];
  }
  return packed || count == 0;
}

static paddle_status prepare(const paddle_request* request, paddle_instance* instance,
                             paddle_status (*run)(const void*, const paddle_run*)) {
  const paddle_view* const x = request->operands[0];
  for (uint32_t i = 0; i < request->operand_count; ++i) {
    const paddle_view* const view = request->operands[i];
    if (view->rank < 1 || view->rank != x->rank || view->dtype != x->dtype || !is_packed(view))
      return PADDLE_DECLINED;
    for (int32_t d = 0; d < x->rank; ++d)
      if (view->shape[d] != x->shape[d]) return PADDLE_DECLINED;
  }
  struct state* const s = calloc(1, sizeof *s);
  s->rows = 1;
  for (int32_t d = 0; d + 1 < x->rank; ++d) s->rows *= x->shape[d];
  s->columns = x->shape[x->rank - 1];
  s->scale = host->attr_float(request, host->attr_index(request, "scale"));
  instance->state = s;
  instance->destroy = free;
  instance->run = run;
  return PADDLE_OK;
}

static paddle_status prepare_scale_add(paddle_call* call, const paddle_request* request,
                                       paddle_instance* instance) {
  (void)call;
  const paddle_status status = prepare(request, instance, run_scale_add);
  if (fault_is("unread_is_read")) instance->unread = 2;
  return status;
}
static paddle_status prepare_row_sum(paddle_call* call, const paddle_request* request,
                                     paddle_instance* instance) {
  (void)call;
  const paddle_status status = prepare(request, instance, run_row_sum);
  if (status != PADDLE_OK) return status;
  const size_t rows = (size_t)((const struct state*)instance->state)->rows;
  instance->scratch_bytes = rows * (fault_is("small_scratch") ? sizeof(float) : sizeof(double));
  return status;
}
static paddle_status prepare_row_best(paddle_call* call, const paddle_request* request,
                                      paddle_instance* instance) {
  (void)call;
  return request->operands[0]->rank > 0 &&
                 request->operands[0]->shape[request->operands[0]->rank - 1] > 0
             ? prepare(request, instance, run_row_best)
             : PADDLE_DECLINED;
}
static paddle_status prepare_ratio(paddle_call* call, const paddle_request* request,
                                   paddle_instance* instance) {
  (void)call;
  return prepare(request, instance, run_ratio);
}
static paddle_status prepare_next(paddle_call* call, const paddle_request* request,
                                  paddle_instance* instance) {
  (void)call;
  return prepare(request, instance, run_next);
}

static const paddle_kernel scale_add = {sizeof scale_add, "faulty.scale_add", "cpu", "float32",
                                        prepare_scale_add};
static const paddle_kernel row_sum = {sizeof row_sum, "faulty.row_sum", "cpu", "float32",
                                      prepare_row_sum};
static const paddle_kernel row_best = {sizeof row_best, "faulty.row_best", "cpu", "float32",
                                       prepare_row_best};
static const paddle_kernel ratio = {sizeof ratio, "faulty.ratio", "cpu", "float32", prepare_ratio};
static const paddle_kernel next = {sizeof next, "faulty.next", "cpu", "int64", prepare_next};
static const paddle_kernel* const kernels[] = {&scale_add, &row_sum, &row_best, &ratio, &next};

static const char schema[] =
    "scale_add:\n"
    "  signature: (x:T, y:T, scale:float=1.0) -> out\n"
    "  doc: x * scale + y.\n"
    "  dtypes: {x: float}\n"
    "  in_place: x\n"
    "  traits: [elementwise]\n"
    "  body: x * scale + y\n"
    "  vjp: [%s, g]\n"
    "  samples: [\"x=f64[3,7] y=f64[3,7]\", \"x=f64[5] y=f64[5] scale=2.5\"]\n"
    "row_sum:\n"
    "  signature: (x:T) -> out\n"
    "  doc: The sum of each row.\n"
    "  dtypes: {x: float}\n"
    "  traits: [linear]\n"
    "  body: sum(x, -1)\n"
    "  samples: [\"x=f64[4,7]\"]\n"
    "row_best:\n"
    "  signature: (x) -> out\n"
    "  doc: The place of the largest element of each row.\n"
    "  dtypes: {x: float}\n"
    "  body: argmax(x, -1)\n"
    "  vjp: \"none: places are whole numbers\"\n"
    "  samples: [\"x=f64[4,7]\"]\n"
    "ratio:\n"
    "  signature: (x:T, y:T) -> out\n"
    "  doc: x / (y * y + 1).\n"
    "  dtypes: {x: float}\n"
    "  body: x / (y * y + 1.0)\n"
    "  vjp: [g / (%s + 1.0), -2.0 * g * x * y / ((y * y + 1.0) * (y * y + 1.0))]\n"
    "  samples: [\"x=f64[3,5] y=f64[3,5]\"]\n"
    "next:\n"
    "  signature: (x:T) -> out\n"
    "  doc: x + 1.\n"
    "  dtypes: {x: integer}\n"
    "  body: x + 1\n"
    "  vjp: \"none: whole numbers\"\n"
    "  samples: [\"x=i64(9007199254740993,-3)\"]\n"
    "centered:\n"
    "  signature: (x:T) -> out\n"
    "  doc: x without its mean.\n"
    "  dtypes: {x: float}\n"
    "  traits: [%s]\n"
    "  body: x - mean(x, -1, keepdim=true)\n"
    "  samples: [\"x=f64[4,7]\"]\n"
    "shifted:\n"
    "  signature: (x:T) -> out\n"
    "  doc: x + 0.5.\n"
    "  dtypes: {x: float}\n"
    "  traits: [%s]\n"
    "  body: x + 0.5\n"
    "  samples: [\"x=f64[4,7]\"]\n";

PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host* from,
                                                      paddle_plugin* plugin) {
  static char text[sizeof schema + 200];
  static const paddle_operation operation = {sizeof operation, text};
  static const paddle_operation* const operations[] = {&operation};
  host = from;
  if (getenv("FAULT")) fault = getenv("FAULT");
  snprintf(text, sizeof text, schema, fault_is("wrong_gradient") ? "g" : "g * scale",
           fault_is("wrong_second_order") ? "detach(y * y)" : "y * y",
           fault_is("not_elementwise") ? "elementwise" : "linear",
           fault_is("not_linear") ? "linear" : "elementwise");
  plugin->needs_minor = 2;
  plugin->name = "faulty";
  plugin->version = "1.0.0";
  plugin->operation_count = 1;
  plugin->operations = operations;
  plugin->kernel_count = sizeof kernels / sizeof kernels[0];
  plugin->kernels = kernels;
  return PADDLE_OK;
}
