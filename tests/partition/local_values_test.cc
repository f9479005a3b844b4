// Local functions on all ranks of a simulated mesh compute the values of the logical function, for
// the operations that have rules, with parts of different sizes.

#include <gtest/gtest.h>

#include <cmath>

#include "comm/simulation.h"
#include "partition/partition.h"
#include "runtime/compile.h"
#include "runtime/execute.h"

namespace paddle::partition {
namespace {

struct Case {
  const char* name;
  const char* inputs;     ///< "f64[5, 4] x; f64[4, 6] w": those named x… are split over data
  const char* body;       ///< operations of the values %x, %w, …; the result is %y
  Placement weight = {};  ///< of the input w
};

constexpr Split kRows = {1, 0, 1, 0}, kColumns = {1, 1, 1, 0};  // units are filled in

const Case kCases[] = {
    {"matmul", "float64[5, 4] x; float64[4, 6] w", "matmul(%x, %w) : float64[5, 6]", {kColumns}},
    {"matmul_inner", "float64[5, 4] x; float64[4, 6] w", "matmul(%x, %w) : float64[5, 6]", {kRows}},
    {"matmul_transposed",
     "float64[5, 4] x; float64[7, 4] w",
     "matmul(%x, %w) {transpose_y = true} : float64[5, 7]",
     {kRows}},
    {"matmul_weight_gradient", "float64[5, 4] x; float64[5, 6] xg",
     "matmul(%x, %xg) {transpose_x = true} : float64[4, 6]"},
    {"linear_bias",
     "float64[5, 4] x; float64[4, 6] w; float64[6] b",
     "linear(%x, %w, %b) : float64[5, 6]",
     {kRows}},
    {"sum", "float64[5, 4] x", "sum(%x) : float64[]"},
    {"mean", "float64[5, 4] x", "mean(%x) {axis = [0]} : float64[4]"},
    {"max", "float64[5, 4] x", "max(%x) {axis = [0]} : float64[4]"},
    {"min", "float64[5, 4] x", "min(%x) : float64[]"},
    {"prod", "float64[5, 4] x", "prod(%x) {axis = [0]} : float64[4]"},
    {"logsumexp", "float64[5, 4] x", "logsumexp(%x) {axis = [1]} : float64[5]"},
    {"broadcast", "float64[5, 4] x; float64[4] w", "add(%x, %w) : float64[5, 4]", {kRows}},
    {"reshape", "float64[5, 4] x", "reshape(%x) {shape = [20]} : float64[20]"},
    {"reshape_apart", "float64[6, 4] x", "reshape(%x) {shape = [3, 8]} : float64[3, 8]"},
    {"transpose", "float64[5, 4] x", "transpose(%x) {perm = [1, 0]} : float64[4, 5]"},
    {"concat", "float64[5, 4] x; float64[3, 4] xb", "concat([%x, %xb]) : float64[8, 4]"},
    {"concat_columns", "float64[5, 4] x; float64[5, 2] xb",
     "concat([%x, %xb]) {axis = 1} : float64[5, 6]"},
    {"slice", "float64[5, 4] x",
     "strided_slice(%x) {axes = [0], starts = [1], ends = [4], strides = [1]} : float64[3, 4]"},
    {"slice_columns", "float64[5, 4] x",
     "strided_slice(%x) {axes = [1], starts = [1], ends = [4], strides = [1]} : float64[5, 3]"},
    {"softmax", "float64[5, 4] x", "softmax(%x) : float64[5, 4]"},
    {"softmax_over_batch", "float64[5, 4] x", "softmax(%x) {axis = 0} : float64[5, 4]"},
    {"cumsum", "float64[5, 4] x", "cumsum(%x) {axis = 1} : float64[5, 4]"},
    {"layer_norm", "float64[5, 4] x",
     "layer_norm(%x, _, _) {normalized_shape = [4]} : "
     "float64[5, 4], float64[5], float64[5]"},
    {"layer_norm_grad",
     "float64[5, 4] x; float64[5, 4] xb; float64[5] xm; float64[5] xr; float64[4] b",
     "layer_norm_grad(%x, %xb, %xm, %xr, %b) : float64[5, 4], float64[4], float64[4]"},
    {"batch_norm",
     "float64[5, 3, 2, 2] x; float64[3] w; float64[3] b",
     "batch_norm(%x, %w, %w, %b, _) {training = true} : float64[5, 3, 2, 2], float64[3], "
     "float64[3], float64[3], float64[3]",
     {kRows}},
    {"batch_norm_grad", "float64[5, 3, 2, 2] x; float64[5, 3, 2, 2] xb; float64[3] w; float64[3] b",
     "batch_norm_grad(%x, %xb, %b, %w, _) : float64[5, 3, 2, 2], float64[3], float64[3]"},
    {"conv2d",
     "float64[5, 4, 6, 6] x; float64[6, 4, 3, 3] w; float64[6] b",
     "conv2d(%x, %w, %b) {padding = 1} : float64[5, 6, 6, 6]",
     {kColumns}},
    {"max_pool2d", "float64[5, 4, 6, 6] x",
     "max_pool2d(%x) {kernel_size = 2} : float64[5, 4, 3, 3], int32[5, 4, 3, 3]"},
    {"attention", "float64[5, 3, 4, 2] x; float64[5, 6, 4, 2] xk; float64[5, 6, 4, 2] xv",
     "attention(%x, %xk, %xv, _) : float64[5, 3, 4, 2], float64[5, 4, 3]"},
    {"embedding",
     "int64[5, 2] x; float64[7, 3] w",
     "embedding(%x, %w) : float64[5, 2, 3]",
     {kRows}},
    {"embedding_grad", "int64[5, 2] x; float64[5, 2, 3] xg",
     "embedding_grad(%x, %xg) {rows = 7} : float64[7, 3]"},
    {"cross_entropy", "int64[5] x; float64[5, 7] xl",
     "softmax_cross_entropy(%xl, %x) : float64[5], float64[5]"},
    {"index_select",
     "int64[5] x; float64[7, 3] w",
     "index_select(%w, %x) : float64[5, 3]",
     {kColumns}},
    {"all_finite",
     "float64[5, 4] x; float64[7, 3] w; float64[3] b",
     "all_finite([%x, %w, %b]) : bool[]",
     {kRows}},
    {"sum_of_squares", "float64[5, 4] x", "sum_of_squares(%x, _) : float64[]"},
};

struct Input {
  std::string type, name;
};

std::vector<Input> inputs_of(const Case& c) {
  std::vector<Input> out;
  for (const std::string& text : split(c.inputs, ';')) {
    const std::string word(trim(text));
    const size_t space = word.rfind(' ');
    out.push_back({word.substr(0, space), word.substr(space + 1)});
  }
  return out;
}

/// The function's text, with the inputs named in place of numbers.
std::string module_text(const Case& c) {
  const std::vector<Input> inputs = inputs_of(c);
  std::string parameters, arguments, body = c.body;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_weight = inputs[i].name == "w";
    if (is_weight) parameters += str("  parameter 'w' : ", inputs[i].type, " = ''\n");
    arguments += str(i ? ",\n" : "", "      %", i, " : ", inputs[i].type,
                     is_weight ? " parameter" : "", " '", inputs[i].name, "'");
    const std::string name = "%" + inputs[i].name;
    for (size_t at = 0; (at = body.find(name, at)) != std::string::npos;) {
      const size_t end = at + name.size();
      if (end < body.size() && std::isalnum(static_cast<unsigned char>(body[end]))) {
        at = end;
        continue;
      }
      body.replace(at, name.size(), str("%", i));
    }
  }
  const std::string types = body.substr(body.rfind(" : ") + 3);
  size_t results = 0;
  for (size_t at = 0; (at = types.find(']', at)) != std::string::npos; ++at) ++results;
  std::string names, outputs;
  for (size_t r = 0; r < results; ++r) {
    names += str(r ? ", " : "", "%", 50 + r);
    outputs += str(r ? ", " : "", "%", 50 + r, " 'y", r, "'");
  }
  return str("module 'm' {\n", parameters, "  func 'f'(\n", arguments, ") {\n    ", names, " = ",
             body, "\n    return ", outputs, "\n  }\n}\n");
}

Array drawn(const TensorType& type, double seed) {
  const Dims shape = concrete(type.shape);
  if (type.dtype != DType::kF64) {
    Array out = Array::zeros(DType::kI64, shape);
    for (int64_t i = 0; i < out.size(); ++i) out.data<int64_t>()[i] = (3 * i + 1) % 7;
    return out.cast(type.dtype);
  }
  Array out = Array::zeros(DType::kF64, shape);
  for (int64_t i = 0; i < out.size(); ++i)
    out.data<double>()[i] = std::sin(seed + 1.7 * static_cast<double>(i)) + 0.1;
  return out;
}

std::vector<Array> run(std::shared_ptr<ir::Function> function, const std::vector<Array>& inputs,
                       comm::Collectives* collectives = nullptr) {
  const auto executable =
      runtime::compile(std::move(function), {}, {.plan = {.collectives = collectives}});
  std::vector<Array> out;
  for (const Array& a : executable->run(inputs)) out.push_back(runtime::copied(a));
  return out;
}

class LocalValues : public testing::TestWithParam<Case> {};

TEST_P(LocalValues, AreThoseOfTheLogicalFunction) {
  const Case& c = GetParam();
  const std::string text = module_text(c);
  SCOPED_TRACE(text);
  runtime::optimize(*ir::parse(text, "case.ir").functions[0]);  // registers the kernels
  const ir::Module module = ir::parse(text, "case.ir");
  ir::verify(module);
  const ir::Function& logical = *module.functions[0];
  std::vector<Array> inputs;
  for (size_t i = 0; i < logical.inputs.size(); ++i)
    inputs.push_back(drawn(logical.body.arguments[i]->type, static_cast<double>(i)));
  const std::vector<Array> wanted = run(ir::parse(text, "case.ir").functions[0], inputs);

  for (const auto& [data, tensor] : {std::pair{2, 1}, {3, 1}, {1, 2}, {2, 2}, {1, 3}}) {
    PartitionOptions options;
    options.mesh = Mesh({{"data", data}, {"tensor", tensor}});
    for (const ir::Port& port : logical.inputs)
      if (port.name[0] == 'x') options.batch_inputs.insert(port.name);
    for (size_t i = 0; i < logical.inputs.size(); ++i)
      if (logical.inputs[i].name == "w") {
        Placement placement = c.weight;
        for (Split& s : placement) s.units = inputs[i].shape[static_cast<size_t>(s.dim)];
        options.placements["w"] = placement;
      }
    comm::simulate(options.mesh.size(),
                   [&](const std::shared_ptr<comm::Communicator>& communicator) {
                     PartitionOptions mine = options;
                     mine.rank = communicator->rank();
                     Partitioned local = partition(logical, mine);
                     ir::verify(*local.function);
                     std::vector<Array> parts;
                     for (size_t i = 0; i < inputs.size(); ++i)
                       parts.push_back(shard(inputs[i], local.inputs[i], mine.mesh, mine.rank));
                     const std::vector<Array> found =
                         run(std::shared_ptr<ir::Function>(std::move(local.function)), parts,
                             &communicator->collectives());
                     ASSERT_EQ(found.size(), wanted.size());
                     for (size_t r = 0; r < found.size(); ++r) {
                       ASSERT_EQ(found[r].shape, wanted[r].shape);
                       for (int64_t i = 0; i < found[r].size(); ++i)
                         ASSERT_NEAR(found[r].number(i), wanted[r].number(i), 1e-12)
                             << "result " << r << ", element " << i << ", " << mine.mesh.text();
                     }
                   });
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, LocalValues, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace paddle::partition
