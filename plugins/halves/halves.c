/* Two operations whose rules are functions in C: types with sizes that may be unknown, bodies,
 * gradients, a view and a cost. Most operations need text only (gated_norm); C is for rules that
 * text cannot say.
 *
 *   paddle plugin build plugins/halves -o halves.so
 *   paddle plugin check halves.so
 */

#include <paddle/plugin/plugin.h>

PADDLE_PLUGIN_NOTE("halves", "1.0.0");

static const char schema[] =
    "first:\n"
    "  signature: (x) -> out\n"
    "  doc: The first half of the last axis.\n"
    "  samples: [\"x=f64[3,8]\", \"x=f64[2,3,4]\"]\n"
    "dot:\n"
    "  signature: (x:T, y:T, scale:float=1.0) -> out\n"
    "  doc: The sum of x * y * scale over the last axis.\n"
    "  dtypes: {x: float}\n"
    "  samples: [\"x=f64[3,7] y=f64[3,7] scale=0.5\"]\n";

static const paddle_types_functions* types;
static const paddle_build_functions* build;

/* --- first --- */

static paddle_status infer_first(paddle_call* call, const paddle_request* request) {
  enum { MOST = 16 };
  paddle_dim dims[MOST];
  const int32_t rank = request->operands[0]->rank;
  if (rank < 1 || rank > MOST) return PADDLE_USAGE;
  for (int32_t i = 0; i < rank; ++i) dims[i] = types->operand_dim(call, 0, i);
  const paddle_dim two = types->constant(call, 2);
  const paddle_dim half = types->floor_divide(call, dims[rank - 1], two);
  if (!types->equal(call, types->multiply(call, half, two), dims[rank - 1], "an even last axis"))
    return PADDLE_USAGE; /* the error is set */
  dims[rank - 1] = half;
  return types->result(call, request->operands[0]->dtype, dims, rank);
}

static paddle_status decompose_first(paddle_call* call, const paddle_request* request) {
  (void)request;
  return build->give(call, build->expression(call, "split(x, 2, axis=-1)[0]", NULL, NULL, 0));
}

static paddle_status vjp_first(paddle_call* call, const paddle_request* request) {
  (void)request;
  const char* const names[] = {"g"};
  const paddle_value values[] = {build->cotangent(call, 0)};
  return build->gradient(
      call, 0, build->expression(call, "concat([g, zeros_like(g)], axis=-1)", names, values, 1));
}

/* The same rows, of which the second half is passed over. */
static paddle_status view_first(const paddle_request* request, int64_t* strides, int64_t* offset) {
  const paddle_view* const x = request->operands[0];
  for (int32_t i = 0; i < x->rank; ++i) strides[i] = x->strides[i];
  *offset = 0;
  return PADDLE_OK;
}

/* --- dot --- */

static paddle_status infer_dot(paddle_call* call, const paddle_request* request) {
  enum { MOST = 16 };
  paddle_dim dims[MOST];
  const int32_t rank = request->operands[0]->rank;
  if (rank < 1 || rank > MOST || request->operands[1]->rank != rank) return PADDLE_USAGE;
  for (int32_t i = 0; i < rank; ++i) {
    dims[i] = types->equal(call, types->operand_dim(call, 0, i), types->operand_dim(call, 1, i),
                           "the shapes of x and y");
    if (!dims[i]) return PADDLE_USAGE;
  }
  return types->result(call, request->operands[0]->dtype, dims, rank - 1);
}

static paddle_status decompose_dot(paddle_call* call, const paddle_request* request) {
  (void)request;
  return build->give(call, build->expression(call, "sum(x * y, -1) * scale", NULL, NULL, 0));
}

static paddle_status vjp_dot(paddle_call* call, const paddle_request* request) {
  (void)request;
  const char* const names[] = {"g"};
  const paddle_value values[] = {build->cotangent(call, 0)};
  static const char* const texts[] = {"unsqueeze(g, -1) * y * scale",
                                      "unsqueeze(g, -1) * x * scale"};
  for (uint32_t i = 0; i < 2; ++i) {
    if (!build->needed(call, i)) continue;
    const paddle_status status =
        build->gradient(call, i, build->expression(call, texts[i], names, values, 1));
    if (status != PADDLE_OK) return status;
  }
  return PADDLE_OK;
}

static double cost_dot(const paddle_request* request) {
  double products = 1;
  for (int32_t i = 0; i < request->operands[0]->rank; ++i)
    products *= (double)request->operands[0]->shape[i];
  return 2 * products;
}

static const paddle_rules first = {.struct_size = sizeof first,
                                   .operation = "first",
                                   .infer = infer_first,
                                   .decompose = decompose_first,
                                   .vjp = vjp_first,
                                   .view = view_first};
static const paddle_rules dot = {.struct_size = sizeof dot,
                                 .operation = "dot",
                                 .infer = infer_dot,
                                 .decompose = decompose_dot,
                                 .vjp = vjp_dot,
                                 .cost = cost_dot};
static const paddle_rules* const rules[] = {&first, &dot};
static const paddle_operation operation = {
    .struct_size = sizeof operation, .schema = schema, .rule_count = 2, .rules = rules};
static const paddle_operation* const operations[] = {&operation};

PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host* host,
                                                      paddle_plugin* plugin) {
  types = host->table(PADDLE_TYPES, 1);
  build = host->table(PADDLE_BUILD, 1);
  plugin->needs_minor = 5;
  plugin->name = "halves";
  plugin->version = "1.0.0";
  plugin->operation_count = 1;
  plugin->operations = operations;
  return types && build ? PADDLE_OK : PADDLE_USAGE;
}
