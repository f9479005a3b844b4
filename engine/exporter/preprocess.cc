#include "exporter/preprocess.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "data/open_data.h"
#include "data/tokens.h"
#include "exporter/check.h"
#include "exporter/onnxruntime.h"
#include "inspect/compare.h"
#include "onnx/export/graph_writer.h"
#include "runtime/execute.h"

namespace paddle::exporter {
namespace {

using data::TransformKind;
using data::TransformOptions;
using formats::onnx::Graph;
using formats::onnx::Node;
using formats::onnx::TensorData;
using onnx::int_attribute;
using onnx::ints_attribute;
using onnx::string_attribute;

constexpr const char* kContrib = "com.microsoft";
constexpr const char* kMl = "ai.onnx.ml";

/// Nodes that prepare one input, in order.
class Nodes {
 public:
  Nodes(Graph& graph, std::string prefix) : graph_(graph), prefix_(std::move(prefix)) {}

  std::string constant(const Array& array) {
    TensorData tensor;
    tensor.name = str(prefix_, ".constant", count_++);
    tensor.dtype = array.dtype;
    tensor.shape = array.shape;
    tensor.array = array;
    graph_.initializers.push_back(tensor);
    return tensor.name;
  }
  std::string ints(const std::vector<int64_t>& values) {
    return constant(Array::from<int64_t>(values, {static_cast<int64_t>(values.size())}));
  }
  std::string add(const std::string& type, std::vector<std::string> inputs,
                  onnx::ExportAttributes attributes = {}, const std::string& domain = "") {
    Node node;
    node.op_type = type;
    node.domain = domain;
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    node.name = str(prefix_, ".", type, count_++);
    node.outputs = {node.name + "_out"};
    nodes_.push_back(node);
    return node.outputs[0];
  }
  std::string cast(const std::string& x, DType to) {
    return add("Cast", {x}, {int_attribute("to", formats::onnx::number_of_dtype(to))});
  }
  std::vector<Node>& nodes() { return nodes_; }

 private:
  Graph& graph_;
  std::string prefix_;
  std::vector<Node> nodes_;
  int count_ = 0;
};

DType floating(DType dtype) { return dtype == DType::kF64 ? DType::kF64 : DType::kF32; }

/// x * factor + offset by channel, in floating point.
std::string affine(Nodes& n, const std::string& x, data::Field& field, std::vector<double> factor,
                   std::vector<double> offset) {
  const DType dtype = floating(field.dtype);
  const auto constant = [&](const std::vector<double>& values) {
    Dims shape;
    if (values.size() > 1) {
      shape.assign(field.shape.size(), 1);
      shape[0] = static_cast<int64_t>(values.size());
    }
    return n.constant(Array::from<double>(values, shape).cast(dtype));
  };
  std::string out = field.dtype == dtype ? x : n.cast(x, dtype);
  out = n.add("Add", {n.add("Mul", {out, constant(factor)}), constant(offset)});
  field.dtype = dtype;
  return out;
}

std::string normalize(Nodes& n, const std::string& x, data::Field& field,
                      const TransformOptions& options) {
  const size_t count = std::max(options.mean.size(), options.deviation.size());
  std::vector<double> factor(count), offset(count);
  for (size_t c = 0; c < count; ++c) {
    const auto pick = [&](const std::vector<double>& list, double otherwise) {
      return list.empty() ? otherwise : list.size() == 1 ? list[0] : list[c];
    };
    factor[c] = 1 / pick(options.deviation, 1);
    offset[c] = -pick(options.mean, 0) * factor[c];
  }
  return affine(n, x, field, factor, offset);
}

/// The axes of rows and columns in a batch.
std::vector<int64_t> image_axes(const data::Field& field) {
  const auto rank = static_cast<int64_t>(field.shape.size());
  return {rank - 1, rank};
}

std::string resize(Nodes& n, const std::string& x, data::Field& field,
                   const TransformOptions& options) {
  const bool whole = is_integer(field.dtype);
  std::string in = field.dtype == DType::kF32 ? x : n.cast(x, DType::kF32);
  onnx::ExportAttributes attributes = {ints_attribute("axes", image_axes(field))};
  if (options.nearest) {
    // The pixel below the center: a half rounds up.
    attributes.push_back(string_attribute("mode", "nearest"));
    attributes.push_back(string_attribute("coordinate_transformation_mode", "half_pixel"));
    attributes.push_back(string_attribute("nearest_mode", "round_prefer_ceil"));
  } else {
    attributes.push_back(string_attribute("mode", "linear"));
    attributes.push_back(string_attribute("coordinate_transformation_mode", "half_pixel"));
    attributes.push_back(int_attribute("antialias", 1));
    attributes.push_back(int_attribute("exclude_outside", 1));
  }
  std::string out =
      n.add("Resize", {in, "", "", n.ints({options.height, options.width})}, attributes);
  if (whole && !options.nearest) out = n.add("Round", {out});
  if (field.dtype != DType::kF32) out = n.cast(out, field.dtype);
  field.shape[field.shape.size() - 2] = options.height;
  field.shape.back() = options.width;
  return out;
}

std::string center_crop(Nodes& n, const std::string& x, data::Field& field,
                        const TransformOptions& options) {
  const std::vector<int64_t> axes = image_axes(field);
  const std::string size = n.add("Gather", {n.add("Shape", {x}), n.ints(axes)});
  const std::string wanted = n.ints({options.height, options.width});
  const std::string first = n.add("Div", {n.add("Sub", {size, wanted}), n.ints({2})});
  field.shape[field.shape.size() - 2] = options.height;
  field.shape.back() = options.width;
  return n.add("Slice", {x, first, n.add("Add", {first, wanted}), n.ints(axes)});
}

std::string pad(Nodes& n, const std::string& x, data::Field& field,
                const TransformOptions& options) {
  const auto side = [&](size_t i) {
    return options.pad.size() == 1 ? options.pad[0] : options.pad[i];
  };
  const size_t rank = field.shape.size() + 1;
  std::vector<int64_t> pads(2 * rank, 0);
  pads[rank - 1] = side(0);
  pads[2 * rank - 1] = side(1);
  pads[rank - 2] = side(2);
  pads[2 * rank - 2] = side(3);
  for (size_t i = 0; i < 2; ++i) {
    int64_t& d = field.shape[field.shape.size() - 1 - i];
    if (d >= 0) d += side(2 * i) + side(2 * i + 1);
  }
  return n.add("Pad",
               {x, n.ints(pads), n.constant(Array::scalar(options.value).cast(field.dtype))});
}

std::string one_hot(Nodes& n, const std::string& x, data::Field& field,
                    const TransformOptions& options) {
  const int64_t classes = options.classes > 0 ? options.classes : field.class_count;
  field.dtype = options.dtype.value_or(DType::kF32);
  field.shape.push_back(classes);
  return n.add("OneHot",
               {n.cast(x, DType::kI64), n.constant(Array::scalar(classes)),
                n.constant(Array::from<double>({0, 1}, {2}).cast(field.dtype))},
               {int_attribute("axis", -1)});
}

std::string reshape(Nodes& n, const std::string& x, data::Field& field,
                    const TransformOptions& options) {
  std::vector<int64_t> shape = {0};  // the batch stays
  shape.insert(shape.end(), options.shape.begin(), options.shape.end());
  field.shape = options.shape;
  return n.add("Reshape", {x, n.ints(shape)});
}

std::string cast(Nodes& n, const std::string& x, data::Field& field,
                 const TransformOptions& options) {
  field.dtype = *options.dtype;
  return n.cast(x, field.dtype);
}

bool has_form(const TransformOptions& options) {
  switch (options.kind) {
    case TransformKind::kCast:
      return is_float(*options.dtype);  // others clamp
    case TransformKind::kScale:
    case TransformKind::kNormalize:
    case TransformKind::kOneHot:
    case TransformKind::kReshape:
    case TransformKind::kResize:
    case TransformKind::kCenterCrop:
    case TransformKind::kPad:
      return true;
    default:
      return false;
  }
}

std::string transformed(Nodes& n, const std::string& x, data::Field& field,
                        const TransformOptions& options) {
  switch (options.kind) {
    case TransformKind::kCast:
      return cast(n, x, field, options);
    case TransformKind::kScale:
      return affine(n, x, field, {options.factor}, {options.offset});
    case TransformKind::kNormalize:
      return normalize(n, x, field, options);
    case TransformKind::kOneHot:
      return one_hot(n, x, field, options);
    case TransformKind::kReshape:
      return reshape(n, x, field, options);
    case TransformKind::kResize:
      return resize(n, x, field, options);
    case TransformKind::kCenterCrop:
      return center_crop(n, x, field, options);
    default:
      return pad(n, x, field, options);
  }
}

/// Columns by what the training rows gave: the logarithm of a size, shift and factor.
std::string scaled(Nodes& n, std::string x, data::Field& field, const data::Fitted& fitted) {
  const DType dtype = floating(field.dtype);
  if (field.dtype != dtype) x = n.cast(x, dtype);
  field.dtype = dtype;
  if (fitted.log) {
    const std::string one = n.constant(Array::scalar(1.0).cast(dtype));
    x = n.add("Mul", {n.add("Sign", {x}), n.add("Log", {n.add("Add", {n.add("Abs", {x}), one})})});
  }
  if (fitted.shift.empty()) return x;
  const auto columns = [&](const std::vector<double>& values) {
    const Dims shape = values.size() > 1 ? Dims{static_cast<int64_t>(values.size())} : Dims{};
    return n.constant(Array::from<double>(values, shape).cast(dtype));
  };
  return n.add("Mul", {n.add("Sub", {x, columns(fitted.shift)}), columns(fitted.factor)});
}

onnx::ExportAttributes encoder(std::vector<std::string> keys, std::vector<int64_t> values,
                               int64_t otherwise) {
  formats::onnx::Attribute names;
  names.name = "keys_strings";
  names.kind = formats::onnx::AttributeKind::kStrings;
  names.strings = std::move(keys);
  return {names, ints_attribute("values_int64s", std::move(values)),
          int_attribute("default_int64", otherwise)};
}

/// The numbers of the tokens of each text, padded with zeros to the longest of the batch and to one
/// at least, and where they are.
struct Tokenized {
  std::string ids, mask;
};
Tokenized tokenized(Nodes& n, std::string x, const data::Fitted& fitted) {
  const auto kind = data::parse_token_kind(fitted.token_kind);
  if (!kind || fitted.unknown_shares_zero)
    fail(ErrorCode::kUsage, "--with-preprocess: the tokens of '", fitted.field,
         "' have no ONNX form");
  if (fitted.lowercase)
    x = n.add(
        "StringNormalizer", {x},
        {string_attribute("case_change_action", "LOWER"), string_attribute("locale", "C.UTF-8")});
  x = n.add(
      "Tokenizer", {x},
      {string_attribute("tokenexp", data::token_pattern(*kind)), string_attribute("pad_value", ""),
       int_attribute("mark", 0), int_attribute("mincharnum", 1)},
      kContrib);
  // Tokens are numbered from 0, which is "<unknown>".
  std::vector<int64_t> numbers(fitted.tokens.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  std::string ids = n.add("LabelEncoder", {x}, encoder(fitted.tokens, numbers, 0), kMl);
  std::string mask = n.add("LabelEncoder", {x}, encoder({""}, {0}, 1), kMl);
  const std::string one = n.ints({1});
  const std::string length = n.add("Gather", {n.add("Shape", {x}), one});
  const std::string missing = n.add("Sub", {one, n.add("Min", {length, one})});
  const std::string pads =
      n.add("Concat", {n.ints({0, 0, 0}), missing}, {int_attribute("axis", 0)});
  const auto finished = [&](const std::string& of) {
    const std::string cut = n.add("Slice", {of, n.ints({0}), n.ints({fitted.max_length}), one});
    return n.add("Pad", {cut, pads, n.constant(Array::scalar<int64_t>(0))});
  };
  return {finished(ids), n.cast(finished(mask), DType::kBool)};
}

/// The ids of categories by their texts. One that the training data lacked has the id 0 where the
/// field says so, else one that no table has a row for.
std::string encoded(Nodes& n, const std::string& x, const data::Fitted& fitted) {
  const int64_t first = fitted.unknown_is_zero && !fitted.unknown_shares_zero ? 1 : 0;
  std::vector<int64_t> numbers(fitted.tokens.size());
  std::iota(numbers.begin(), numbers.end(), first);
  const int64_t unknown = fitted.unknown_is_zero ? 0 : std::ssize(fitted.tokens) + first;
  return n.add("LabelEncoder", {x}, encoder(fitted.tokens, numbers, unknown), kMl);
}

/// Takes the scaling of columns out of the options of a dataset.
void leave_unscaled(data::DatasetOptions& options) {
  options.scales.clear();
  if (auto* csv = std::get_if<data::CsvFileOptions>(&options.source)) {
    for (data::CsvField& field : csv->fields) {
      field.scaling = data::Scaling::kNone;
      field.log = false;
      field.shift.clear();
      field.factor.clear();
    }
  } else if (auto* series = std::get_if<data::SeriesOptions>(&options.source)) {
    series->scaling = data::Scaling::kNone;
    series->shift.clear();
    series->factor.clear();
  } else if (auto* mixture = std::get_if<data::MixtureOptions>(&options.source)) {
    for (auto& [name, source] : mixture->sources) {
      data::DatasetOptions own = *source;
      leave_unscaled(own);
      source = std::make_shared<const data::DatasetOptions>(std::move(own));
    }
  }
}

void rename_reads(Graph& graph, const std::string& from, const std::string& to) {
  for (Node& node : graph.nodes) {
    for (std::string& input : node.inputs)
      if (input == from) input = to;
    for (const auto& attribute : node.attributes)
      for (const auto& inner : attribute.graphs) rename_reads(*inner, from, to);
  }
}

/// Renames a value that nodes write and read.
void rename_value(Graph& graph, const std::string& from, const std::string& to) {
  rename_reads(graph, from, to);
  for (Node& node : graph.nodes)
    for (std::string& output : node.outputs)
      if (output == from) output = to;
}

/// A symbol for a size that differs by sample: of an image its rows or columns.
std::string symbol_for(const data::Field& field, size_t axis) {
  const size_t from_end = field.shape.size() - axis;
  return str(field.name, from_end == 1 ? "_columns" : from_end == 2 ? "_rows" : str("_", axis));
}

}  // namespace

Preprocess::Preprocess(const std::string& model, const program::ModelMetadata& metadata)
    : model_(model), metadata_(metadata) {
  if (!metadata.config || !metadata.config->find("data"))
    fail(ErrorCode::kUsage, model,
         ": --with-preprocess is for the models of runs, whose config says ",
         "what happens to their data");
  const data::DataConfig run = data::read_data_section(*metadata.config);
  data::DatasetOptions options = run.valid ? *run.valid : run.train;
  fitted_ = metadata.fitted;
  for (const data::Fitted& each : fitted_)
    if (each.tokenizer)
      fail(ErrorCode::kUsage, model, ": --with-preprocess: the tokenizer of '", each.field,
           "' has no ONNX form");
  data::apply_fitted(options, fitted_);
  scaled_ = data::make_dataset(options);
  leave_unscaled(options);
  if (const auto* csv = std::get_if<data::CsvFileOptions>(&options.source))
    for (const data::CsvField& field : csv->fields) {
      const bool is_category = field.kind == data::ColumnKind::kCategorical;
      if (field.kind != data::ColumnKind::kText && !is_category) continue;
      if (is_category && field.buckets > 0)
        hashed_.push_back(field.name);
      else
        string_columns_[field.name] = 1;
      if (field.scalar || !is_category) scalars_.push_back(field.name);
    }
  raw_ = data::make_dataset(options);
  for (auto& [name, columns] : string_columns_) {
    const auto& field = raw_->fields()[static_cast<size_t>(raw_->find_field(name))];
    if (field.max_length == 0 && !field.shape.empty())
      columns = static_cast<size_t>(field.shape[0]);
  }
  transforms_ = run.valid_loader.transforms;
  for (const TransformOptions& each : transforms_)
    if (!has_form(each))
      fail(ErrorCode::kUsage, model, ": --with-preprocess: the transform ", name_of(each.kind),
           " has no ONNX form");
}

int64_t Preprocess::least_opset() const {
  return std::any_of(transforms_.begin(), transforms_.end(),
                     [](const auto& each) { return each.kind == TransformKind::kResize; })
             ? 18
             : 17;
}

std::vector<Preprocess::Input> Preprocess::inputs_of(const Graph& graph) const {
  std::vector<Input> out;
  for (const auto& value : graph.inputs) {
    const int64_t at = raw_->find_field(value.name);
    if (at < 0) continue;
    Input input{value.name, raw_->fields()[static_cast<size_t>(at)], nullptr, false, {}};
    const data::Fitted* fitted = data::find_fitted(fitted_, value.name);
    input.is_category = fitted && fitted->token_kind.empty() && !fitted->tokens.empty() &&
                        !fitted->unknown_shares_zero && string_columns_.contains(value.name);
    if (input.is_category) input.fitted = fitted;
    if (fitted && (fitted->log || !fitted->shift.empty() || !fitted->token_kind.empty()))
      input.fitted = fitted;
    for (const TransformOptions& each : transforms_)
      if (std::find(each.fields.begin(), each.fields.end(), value.name) != each.fields.end())
        input.transforms.push_back(each);
    if (input.fitted || !input.transforms.empty()) out.push_back(std::move(input));
  }
  return out;
}

void Preprocess::insert(formats::onnx::Model& model) const {
  Graph& graph = model.graph;
  std::vector<Node> before;
  for (const Input& input : inputs_of(graph)) {
    Nodes nodes(graph, input.name);
    data::Field field = input.raw;
    std::string x = input.name;
    if (input.is_text()) {
      const Tokenized tokens = tokenized(nodes, x, *input.fitted);
      x = tokens.ids;
      const std::string mask = input.name + "_mask";
      std::erase_if(graph.inputs, [&](const auto& value) { return value.name == mask; });
      rename_reads(graph, mask, tokens.mask);
      model.opsets[kContrib] = 1;
      model.opsets[kMl] = 2;
    } else if (input.is_category) {
      x = encoded(nodes, x, *input.fitted);
      field.dtype = DType::kI64;
      model.opsets[kMl] = 2;
    } else if (input.fitted) {
      x = scaled(nodes, x, field, *input.fitted);
    }
    for (const TransformOptions& each : input.transforms) x = transformed(nodes, x, field, each);
    auto& declared = *std::find_if(graph.inputs.begin(), graph.inputs.end(),
                                   [&](const auto& value) { return value.name == input.name; });
    if (field.dtype != *declared.type.dtype) x = nodes.cast(x, *declared.type.dtype);
    rename_reads(graph, input.name, x);
    Shape shape = {declared.type.shape->at(0)};
    for (size_t i = 0; i < input.raw.shape.size() && !input.is_text(); ++i) {
      const int64_t size = input.raw.shape[i];
      shape.push_back(size < 0 ? Dim::symbol(symbol_for(input.raw, i)) : Dim(size));
    }
    declared.type.dtype = input.takes_strings() ? DType::kString : input.raw.dtype;
    declared.type.shape = shape;
    before.insert(before.end(), nodes.nodes().begin(), nodes.nodes().end());
  }
  graph.nodes.insert(graph.nodes.begin(), before.begin(), before.end());
  restore_outputs(graph);
}

/// Outputs keep their names; the values that the model gives get others.
void Preprocess::restore_outputs(Graph& graph) const {
  std::vector<std::string> names;
  for (const auto& value : graph.outputs) names.push_back(value.name);
  const program::OutputUnits units(metadata_, names);
  for (size_t i = 0; i < names.size(); ++i) {
    std::vector<const program::ScaledOutput*> scales;
    for (const program::ScaledOutput& each : units.scales())
      if (each.output == i) scales.push_back(&each);
    const auto& type = graph.outputs[i].type;
    if (scales.empty() || !type.dtype || !is_float(*type.dtype)) continue;
    // One pair for all, or one for each place on the last axis.
    const bool is_one = scales.size() == 1 && scales[0]->unit.at < 0 &&
                        (scales[0]->scale.columns() <= 1 || scales[0]->unit.column >= 0);
    const auto last = type.shape && !type.shape->empty() ? type.shape->back().constant()
                                                         : std::optional<int64_t>();
    if (!is_one && !last)
      fail(ErrorCode::kUsage, model_, ": --with-preprocess: the output '", names[i],
           "' has columns in several units, and their number is not known");
    const int64_t size = is_one ? 1 : *last;
    std::vector<double> factors(static_cast<size_t>(size), 1), offsets(factors.size(), 0);
    std::vector<uint8_t> is_log(factors.size());
    for (const program::ScaledOutput* each : scales)
      for (int64_t place = 0; place < size; ++place) {
        const auto column = each->column_of(place, size);
        if (!column) continue;
        const auto at = static_cast<size_t>(place);
        std::tie(factors[at], offsets[at]) = each->linear(*column);
        is_log[at] = !each->scale.is_linear();
      }
    Nodes nodes(graph, names[i] + ".restored");
    const auto row = [&](const std::vector<double>& values) {
      return nodes.constant(
          Array::from<double>(values, is_one ? Dims{} : Dims{size}).cast(*type.dtype));
    };
    const std::string raw = names[i] + ".scaled";
    rename_value(graph, names[i], raw);
    std::string y = nodes.add("Add", {nodes.add("Mul", {raw, row(factors)}), row(offsets)});
    if (std::find(is_log.begin(), is_log.end(), 1) != is_log.end()) {
      const std::string one = nodes.constant(Array::scalar(1.0).cast(*type.dtype));
      const std::string grown =
          nodes.add("Mul", {nodes.add("Sign", {y}),
                            nodes.add("Sub", {nodes.add("Exp", {nodes.add("Abs", {y})}), one})});
      Array chosen = Array::empty(DType::kBool, is_one ? Dims{} : Dims{size});
      for (size_t at = 0; at < is_log.size(); ++at) chosen.data<bool>()[at] = is_log[at] != 0;
      y = nodes.add("Where", {nodes.constant(chosen), grown, y});
    }
    nodes.nodes().back().outputs = {names[i]};
    graph.nodes.insert(graph.nodes.end(), nodes.nodes().begin(), nodes.nodes().end());
  }
}

std::vector<std::string> Preprocess::notes(const Graph& graph) const {
  std::vector<std::string> out, names;
  for (const auto& value : graph.outputs) names.push_back(value.name);
  for (const auto& value : graph.inputs)
    if (std::find(hashed_.begin(), hashed_.end(), value.name) != hashed_.end())
      out.push_back(
          str("the input '", value.name,
              "' takes the numbers of hash buckets, as "
              "`paddle train --check-data` shows them: ONNX has no operator for the "
              "hash; a `vocabulary` in place of `buckets` would become part of the file"));
  const program::OutputUnits units(metadata_, names);
  out.insert(out.end(), units.warnings().begin(), units.warnings().end());
  return out;
}

onnx::Value Preprocess::strings_of(int64_t sample, const std::string& field) const {
  const std::string text = raw_->key_of(sample, field).value_or("");
  const size_t columns = string_columns_.at(field);
  if (std::find(scalars_.begin(), scalars_.end(), field) != scalars_.end())
    return onnx::Value::of_strings({1}, {text});
  std::vector<std::string> cells;
  for (size_t begin = 0; cells.size() < columns;) {
    const size_t end = std::min(text.find('\x1f', begin), text.size());
    cells.push_back(text.substr(begin, end - begin));
    begin = std::min(end + 1, text.size());
  }
  return onnx::Value::of_strings({1, static_cast<int64_t>(columns)}, cells);
}

Array Preprocess::batch_of_one(const data::Sample& sample, const std::string& input,
                               DType dtype) const {
  int64_t field = raw_->find_field(input);
  const std::string suffix = "_mask";
  const bool is_mask = field < 0 && input.ends_with(suffix);
  if (is_mask) field = raw_->find_field(input.substr(0, input.size() - suffix.size()));
  if (field < 0) fail(ErrorCode::kUsage, model_, ": the data has no field '", input, "'");
  const auto at = static_cast<size_t>(field);
  Array array = sample[at].array().cast(dtype);
  Dims shape = {1};
  shape.insert(shape.end(), array.shape.begin(), array.shape.end());
  if (raw_->fields()[at].max_length > 0 && shape[1] == 0) {  // as the loader pads it
    shape[1] = 1;
    return Array::zeros(dtype, shape);
  }
  if (is_mask) {
    Array mask = Array::empty(DType::kBool, {shape[0], shape[1]});
    std::fill_n(mask.data<bool>(), mask.size(), true);
    return mask;
  }
  array.shape = shape;
  array.strides = contiguous_strides(shape);
  return array;
}

std::vector<CheckResult> Preprocess::check(
    const ExportJob& job, const std::string& file,
    const std::function<void(const std::string&)>& note) const {
  const auto source = program::load_model(job.model, job.load);
  const auto exported = open_exported(job, file);
  std::vector<TransformOptions> transforms = transforms_;
  for (TransformOptions& each : transforms)
    std::erase_if(each.fields, [&](const std::string& f) { return scaled_->find_field(f) < 0; });
  std::erase_if(transforms, [](const TransformOptions& each) { return each.fields.empty(); });
  const data::Pipeline pipeline(scaled_->fields(), transforms);
  const program::OutputUnits units(*source);
  std::vector<CheckResult> out;
  for (int64_t i = 0; i < std::min<int64_t>(job.checks, raw_->size()); ++i) {
    data::Sample raw, prepared;
    data::Value scratch;
    raw_->read(i, {}, raw);
    scaled_->read(i, {}, prepared);
    pipeline.apply(prepared, i, {}, scratch);
    const auto inputs = [&](const program::Model& model, const data::Sample& sample) {
      onnx::Values values;
      for (const auto& [name, type] : model.inputs())
        values.push_back(type.dtype == DType::kString
                             ? strings_of(i, name)
                             : onnx::Value(Tensor(batch_of_one(sample, name, type.dtype))));
      return values;
    };
    CheckResult check;
    check.ran = true;
    check.dims["sample"] = i;
    std::vector<Array> expected;
    for (const Array& each : run_values(*source, inputs(*source, prepared)))
      expected.push_back(runtime::copied(each));
    expected = units.restored(expected);
    const std::vector<Array> found = run_values(*exported, inputs(*exported, raw));
    for (size_t k = 0; k < expected.size() && check.difference.empty(); ++k) {
      // A rounded pixel may be the next one.
      const double largest = largest_of(expected[k]);
      const inspect::Tolerance tolerance{2e-3, std::max(1e-4, 5e-3 * largest)};
      const std::string bad = inspect::difference(found.at(k), expected[k], tolerance);
      if (!bad.empty()) check.difference = "'" + source->outputs()[k] + "': " + bad;
    }
    out.push_back(check);
  }
  if (out.empty()) note("the data has no samples; the file is not compared with the model");
  return out;
}

}  // namespace paddle::exporter
