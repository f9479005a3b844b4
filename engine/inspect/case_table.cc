#include "inspect/case_table.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "autograd/autograd.h"
#include "base/files.h"
#include "inspect/compare.h"
#include "inspect/op_call.h"
#include "ops/core/operators.h"
#include "ops/generated/math.h"

namespace paddle::inspect {
namespace {

/// Arguments keep the order of the table.
using Json = nlohmann::ordered_json;

/// Turns a case's JSON into arguments.
class ArgumentReader {
 public:
  ArgumentReader(const Op& op, const formats::NpzReader* arrays, bool strided)
      : op_(op), arrays_(arrays), strided_(strided) {}

  std::vector<std::pair<std::string, Argument>> read(const Json& args) const {
    std::vector<std::pair<std::string, Argument>> out;
    for (const auto& [name, value] : args.items()) out.emplace_back(name, argument(name, value));
    return out;
  }
  Array array(const Json& value) const {
    const std::string key = value.at("array").get<std::string>();
    Array a = load(key);
    if (value.contains("dtype") && !value["dtype"].is_null()) a = a.cast(dtype(value["dtype"]));
    return strided_ ? strided_copy(a) : a;
  }
  Array load(const std::string& key) const {
    if (!arrays_) fail(ErrorCode::kData, "there is no .npz for the array '", key, "'");
    return arrays_->read(key);
  }

 private:
  static DType dtype(const Json& value) {
    const auto found = parse_dtype(value.get<std::string>());
    if (!found) fail(ErrorCode::kData, "unknown dtype ", value.dump());
    return *found;
  }
  static bool is_array(const Json& v) { return v.is_object() && v.contains("array"); }

  Argument argument(const std::string& name, const Json& value) const {
    if (is_array(value)) return Tensor(array(value));
    if (value.is_object() && value.contains("arrays")) {
      Tensors list;
      for (const Json& item : value["arrays"]) {
        if (item.is_null())
          list.emplace_back();
        else if (item.is_object())
          list.emplace_back(array(item));
        else
          list.emplace_back(array({{"array", item}, {"dtype", value.value("dtype", Json())}}));
      }
      return list;
    }
    if (value.is_array() && op_.operand_index(parameter_name(op_, name)) >= 0) {
      // Lists of lists are flattened; a list of numbers may be meant for an overload.
      Tensors list;
      if (append_tensors(value, list)) return list;
    }
    return plain(find_attr(op_, name), value);
  }

  /// False if the list has anything but tensors and lists of tensors.
  bool append_tensors(const Json& value, Tensors& list) const {
    for (const Json& item : value) {
      if (is_array(item)) {
        list.emplace_back(array(item));
      } else if (item.is_object() && item.contains("arrays")) {
        for (const Json& key : item["arrays"]) list.emplace_back(array({{"array", key}}));
      } else if (!item.is_array() || !append_tensors(item, list)) {
        return false;
      }
    }
    return true;
  }

  AttrValue plain(const AttrDef* def, const Json& value) const {
    if (value.is_null()) return {};
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number_unsigned()) {
      if (value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        fail(ErrorCode::kUsage, value.dump(), " does not fit 64 bits");
      return value.get<int64_t>();
    }
    if (value.is_number_integer()) return value.get<int64_t>();
    if (value.is_number()) return value.get<double>();
    if (value.is_string()) return word(def, value.get<std::string>());
    if (value.is_array()) {
      AttrValue::List items;
      for (const Json& item : value) items.push_back(plain(def, item));
      return items;
    }
    if (is_array(value)) {  // a number of a list given as a 0-D tensor
      const Array a = array(value);
      if (a.size() != 1) fail(ErrorCode::kUsage, "expected one number, found ", str(a.shape));
      return is_float(a.dtype) ? AttrValue(a.number()) : AttrValue(a.integer());
    }
    if (value.is_object() && value.contains("complex"))
      return std::complex<double>(plain(def, value["complex"].at(0)).as_double(),
                                  plain(def, value["complex"].at(1)).as_double());
    fail(ErrorCode::kData, "unknown form of argument: ", value.dump());
  }

  static AttrValue word(const AttrDef* def, const std::string& text) {
    const bool wanted = def && (def->type == AttrType::kString || def->type == AttrType::kWord ||
                                def->type == AttrType::kStrings || def->type == AttrType::kDType);
    if (!wanted) {
      if (text == "inf") return std::numeric_limits<double>::infinity();
      if (text == "-inf") return -std::numeric_limits<double>::infinity();
      if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    }
    return text;
  }

  const Op& op_;
  const formats::NpzReader* arrays_;
  bool strided_;
};

/// A gradient that a case expects: of which input, and the key of its array.
struct ExpectedGradient {
  size_t input;
  std::string label, key;
};

std::vector<ExpectedGradient> expected_gradients(const Json& json, const NamedCall& call) {
  std::vector<ExpectedGradient> out;
  if (!json.contains("grads") || json["grads"].is_null()) return out;
  for (const auto& [name, value] : json["grads"].items()) {
    if (value.is_null()) continue;
    const auto& positions = call.positions(name);
    const Json keys = value.is_array() ? value : Json::array({value});
    if (keys.size() > positions.size())
      fail(ErrorCode::kData, "grads: '", name, "' has ", positions.size(), " tensors, ",
           keys.size(), " are expected");
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i].is_null()) continue;
      const Json& key = keys[i].is_object() ? keys[i].at("array") : keys[i];
      out.push_back({positions[i], call.input_name(positions[i]), key.get<std::string>()});
    }
  }
  return out;
}

class CaseRun {
 public:
  CaseRun(const Op& op, const Json& json, const formats::NpzReader* arrays,
          const CaseOptions& options)
      : json_(json),
        reader_(op, arrays, options.strided),
        call_(op, reader_.read(json.value("args", Json::object()))),
        gradients_(expected_gradients(json, call_)),
        inputs_(call_.inputs()),
        device_(options.device) {
    tolerance_.relative = json.value("rtol", tolerance_.relative);
    tolerance_.absolute = json.value("atol", tolerance_.absolute);
    if (json.contains("outputs") && json["outputs"].is_array()) outputs_ = json["outputs"];
    if (gradients_.empty() || !json.contains("cotangents") || json["cotangents"].is_null()) return;
    given_cotangents_ = true;
    const Json list =
        json["cotangents"].is_array() ? json["cotangents"] : Json::array({json["cotangents"]});
    for (const Json& key : list) {
      cotangents_.push_back(key.is_null() ? -1 : static_cast<int>(inputs_.size()));
      if (!key.is_null()) inputs_.push_back(reader_.load(key.is_object() ? key.at("array") : key));
    }
  }

  std::string compare(Mode mode) const {
    const auto found = run(
        mode, [this](const Tensors& t) { return evaluate(t); }, inputs_, device_);
    const size_t results = found.size() - gradients_.size();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].is_null()) continue;
      if (i >= results) return str("output ", i, " is missing: the operation gave ", results);
      const Json& key = outputs_[i].is_object() ? outputs_[i].at("array") : outputs_[i];
      const std::string bad =
          difference(*found[i], reader_.load(key.get<std::string>()), tolerance_);
      if (!bad.empty()) return str("output ", i, ": ", bad);
    }
    for (size_t i = 0; i < gradients_.size(); ++i) {
      const ExpectedGradient& g = gradients_[i];
      const Array& x = inputs_[g.input];
      const Array gradient =
          found[results + i] ? *found[results + i] : Array::zeros(x.dtype, x.shape);
      const std::string bad = difference(gradient, reader_.load(g.key), tolerance_);
      if (!bad.empty()) return str("gradient of ", g.label, ": ", bad);
    }
    return "";
  }

  /// Runs without comparing; throws if the call is rejected.
  void attempt(Mode mode) const {
    run(
        mode, [this](const Tensors& t) { return evaluate(t); }, inputs_, device_);
  }

 private:
  Tensors evaluate(const Tensors& tensors) const {
    Tensors results = call_(tensors);
    if (gradients_.empty()) return results;
    Tensors wanted, seeds(results.size());
    for (const ExpectedGradient& g : gradients_) wanted.push_back(tensors[g.input]);
    for (size_t i = 0; i < results.size() && i < cotangents_.size(); ++i)
      if (cotangents_[i] >= 0) {
        const Tensor& seed = tensors[static_cast<size_t>(cotangents_[i])];
        const DType dtype = results[i].dtype();
        seeds[i] = seed.dtype() == dtype ? seed : ops::cast(seed, dtype);
      }
    if (!given_cotangents_) seeds.clear();
    for (const Tensor& g : autograd::grad(results, wanted, seeds)) results.push_back(g);
    return results;
  }

  const Json& json_;
  ArgumentReader reader_;
  NamedCall call_;
  std::vector<ExpectedGradient> gradients_;
  std::vector<Array> inputs_;    ///< the call's, then the cotangents
  std::vector<int> cotangents_;  ///< per output: position in the inputs, or -1
  bool given_cotangents_ = false;
  Json outputs_ = Json::array();
  Tolerance tolerance_;
  Device device_;
};

/// "" if the call is rejected as it should be.
std::string expect_rejection(const Op& op, const Json& json, const formats::NpzReader* arrays,
                             const CaseOptions& options, Mode mode) {
  try {
    CaseRun(op, json, arrays, options).attempt(mode);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kInternal) return "";
    return str("rejected by an internal error: ", e.what());
  }
  return "not rejected";
}

}  // namespace

CaseTable read_case_table(const std::string& path) {
  CaseTable table;
  const std::string text = read_file(path, uint64_t{1} << 30, ErrorCode::kUsage);
  SourceLocation place{path, 0, 1};
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line(trim(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
    ++place.line;
    if (line.empty()) continue;
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("op") || !json["op"].is_string())
      throw Error(ErrorCode::kData, "expected a case: an object with \"op\"", place);
    const std::string op = json["op"];
    const bool named = json.contains("name") && json["name"].is_string();
    table.cases.push_back(
        {named ? json["name"].get<std::string>() : str(op, "@", place.line), op, line});
  }
  const size_t dot = path.rfind('.');
  const std::string archive = path.substr(0, dot == std::string::npos ? path.size() : dot) + ".npz";
  if (file_exists(archive)) table.arrays = std::make_shared<formats::NpzReader>(archive);
  return table;
}

std::optional<NamedCall> read_case_call(const Case& c, const formats::NpzReader* arrays) {
  const Op& op = get_op(c.op);
  try {
    const Json json = Json::parse(c.json);
    if (json.value("error", false)) return std::nullopt;
    const ArgumentReader reader(op, arrays, /*strided=*/false);
    return NamedCall(op, reader.read(json.value("args", Json::object())));
  } catch (const Json::exception& e) {
    fail(ErrorCode::kData, "malformed case: ", e.what());
  }
}

std::string run_case(const Case& c, const formats::NpzReader* arrays, const CaseOptions& options) {
  const Op* op = find_op(c.op);
  if (!op) return str("unknown operation '", c.op, "'", did_you_mean(c.op, op_names()));
  try {
    const Json json = Json::parse(c.json);
    const bool rejected = json.value("error", false);
    for (const Mode mode : options.modes) {
      std::string bad;
      try {
        bad = rejected ? expect_rejection(*op, json, arrays, options, mode)
                       : CaseRun(*op, json, arrays, options).compare(mode);
      } catch (const Error& e) {
        bad = e.what();
      }
      if (!bad.empty()) return str(text(mode), ": ", bad);
    }
  } catch (const Json::exception& e) {
    return str("malformed case: ", e.what());
  }
  return "";
}

}  // namespace paddle::inspect
