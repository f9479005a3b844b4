#include "infer/results.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "formats/csv.h"
#include "formats/npz.h"

namespace paddle::infer {
namespace {

/// Probabilities of a row of logits.
std::vector<double> probabilities(const Array& logits, int64_t row, int64_t classes) {
  std::vector<double> p(static_cast<size_t>(classes));
  double top = -INFINITY, sum = 0;
  for (int64_t c = 0; c < classes; ++c) top = std::max(top, logits.number(row * classes + c));
  for (int64_t c = 0; c < classes; ++c)
    sum += p[static_cast<size_t>(c)] = std::exp(logits.number(row * classes + c) - top);
  for (double& v : p) v /= sum;
  return p;
}

bool is_classification(const Predictor& model, const Array& output) {
  return output.ndim() == 2 && is_float(output.dtype) && model.meaning().class_count > 1 &&
         output.shape[1] == model.meaning().class_count;
}

std::string class_name(const Predictor& model, int64_t index) {
  const auto& names = model.meaning().classes;
  return index < static_cast<int64_t>(names.size()) ? names[static_cast<size_t>(index)]
                                                    : std::to_string(index);
}

/// Outputs of all batches, joined along the first axis.
class NpzResults final : public ResultWriter {
 public:
  NpzResults(const Predictor& model, std::string path) : model_(model), path_(std::move(path)) {}
  void add(const InputBatch&, const std::vector<Array>& outputs) override {
    parts_.resize(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Array packed = outputs[i].contiguous();
      Array own = Array::empty(packed.dtype, packed.shape);
      std::memcpy(own.raw(), packed.raw(),
                  static_cast<size_t>(storage_bytes(own.dtype, own.size())));
      parts_[i].push_back(own);
    }
  }
  void close() override {
    formats::NamedArrays arrays;
    for (size_t i = 0; i < parts_.size(); ++i)
      arrays.push_back({model_.outputs()[i], joined(parts_[i])});
    formats::write_npz(path_, arrays);
  }

 private:
  static Array joined(const std::vector<Array>& parts) {
    if (parts.size() == 1) return parts[0];
    Dims shape = parts[0].shape;
    if (shape.empty()) {
      shape = {static_cast<int64_t>(parts.size())};
    } else {
      shape[0] = 0;
      for (const Array& p : parts) {
        Dims tail(p.shape.begin() + 1, p.shape.end()), first(shape.begin() + 1, shape.end());
        if (tail != first)
          fail(ErrorCode::kData,
               "outputs of different batches have different shapes; give a --batch that takes all "
               "rows");
        shape[0] += p.shape[0];
      }
    }
    Array out = Array::empty(parts[0].dtype, shape);
    auto* to = static_cast<std::byte*>(out.raw());
    for (const Array& p : parts) {
      const auto bytes = static_cast<size_t>(storage_bytes(p.dtype, p.size()));
      std::memcpy(to, p.raw(), bytes);
      to += bytes;
    }
    return out;
  }
  const Predictor& model_;
  std::string path_;
  std::vector<std::vector<Array>> parts_;
};

nlohmann::ordered_json json_value(const Array& a, int64_t begin, const Dims& shape, size_t axis) {
  if (axis == shape.size()) {
    if (is_bool(a.dtype)) return a.integer(begin) != 0;
    if (!is_float(a.dtype)) return a.integer(begin);
    const double v = a.number(begin);
    return std::isfinite(v) ? nlohmann::ordered_json(v) : nlohmann::ordered_json();
  }
  int64_t step = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) step *= shape[i];
  auto list = nlohmann::ordered_json::array();
  for (int64_t i = 0; i < shape[axis]; ++i)
    list.push_back(json_value(a, begin + i * step, shape, axis + 1));
  return list;
}

/// One text line per row, collected and written at once at the end, or given to `line`.
class RowResults final : public ResultWriter {
 public:
  enum class Form { kJson, kCsv, kPlain };
  RowResults(const Predictor& model, Form form, std::string path,
             std::function<void(const std::string&)> line)
      : model_(model), form_(form), line_(std::move(line)) {
    if (!path.empty()) file_ = std::make_unique<AtomicFile>(path);
  }
  void add(const InputBatch& batch, const std::vector<Array>& outputs) override {
    std::vector<Array> packed;
    for (const Array& a : outputs) packed.push_back(a.contiguous());
    if (form_ == Form::kCsv && row_ == 0) emit(csv_header(packed));
    for (int64_t i = 0; i < batch.rows; ++i, ++row_) {
      const std::string place =
          i < static_cast<int64_t>(batch.places.size()) ? batch.places[static_cast<size_t>(i)] : "";
      emit(form_ == Form::kJson  ? json_row(packed, i, place)
           : form_ == Form::kCsv ? csv_row(packed, i, place)
                                 : plain_row(packed, i, place));
    }
  }
  void close() override {
    if (file_) file_->commit();
  }

 private:
  void emit(const std::string& text) {
    if (file_)
      file_->write(text + "\n");
    else
      line_(text);
  }
  static Dims row_shape(const Array& a) {
    return a.shape.empty() ? Dims() : Dims(a.shape.begin() + 1, a.shape.end());
  }
  static int64_t row_size(const Array& a) {
    const Dims shape = row_shape(a);
    return element_count(std::span<const int64_t>(shape));
  }
  std::string json_row(const std::vector<Array>& outputs, int64_t i,
                       const std::string& place) const {
    nlohmann::ordered_json o;
    o["row"] = row_;
    if (!place.empty()) o["source"] = place;
    if (is_classification(model_, outputs[0])) {
      const auto p = probabilities(outputs[0], i, outputs[0].shape[1]);
      const auto best = std::max_element(p.begin(), p.end()) - p.begin();
      o["class"] = class_name(model_, best);
      o["probability"] = p[static_cast<size_t>(best)];
      o["probabilities"] = p;
    } else {
      for (size_t k = 0; k < outputs.size(); ++k)
        o[model_.outputs()[k]] =
            json_value(outputs[k], i * row_size(outputs[k]), row_shape(outputs[k]), 0);
    }
    return o.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  std::string csv_header(const std::vector<Array>& outputs) const {
    std::string out = "row,source";
    if (is_classification(model_, outputs[0])) {
      out += ",class,probability";
      for (int64_t c = 0; c < outputs[0].shape[1]; ++c)
        out += "," + formats::csv_quote("p_" + class_name(model_, c));
      return out;
    }
    for (size_t k = 0; k < outputs.size(); ++k)
      for (int64_t c = 0; c < row_size(outputs[k]); ++c)
        out += "," + formats::csv_quote(row_size(outputs[k]) == 1
                                            ? model_.outputs()[k]
                                            : model_.outputs()[k] + "_" + std::to_string(c));
    return out;
  }
  std::string csv_row(const std::vector<Array>& outputs, int64_t i,
                      const std::string& place) const {
    std::string out = std::to_string(row_) + "," + formats::csv_quote(place);
    if (is_classification(model_, outputs[0])) {
      const auto p = probabilities(outputs[0], i, outputs[0].shape[1]);
      const auto best = std::max_element(p.begin(), p.end()) - p.begin();
      out += "," + formats::csv_quote(class_name(model_, best)) + "," +
             format_double(p[static_cast<size_t>(best)]);
      for (const double v : p) out += "," + format_double(v);
      return out;
    }
    for (const Array& a : outputs)
      for (int64_t c = 0; c < row_size(a); ++c) {
        const int64_t at = i * row_size(a) + c;
        out +=
            "," + (is_float(a.dtype) ? format_double(a.number(at)) : std::to_string(a.integer(at)));
      }
    return out;
  }
  std::string plain_row(const std::vector<Array>& outputs, int64_t i,
                        const std::string& place) const {
    const std::string head = place.empty() ? str("row ", row_) : place;
    if (!is_classification(model_, outputs[0])) return head + ": " + json_row(outputs, i, "");
    const auto p = probabilities(outputs[0], i, outputs[0].shape[1]);
    const auto best = std::max_element(p.begin(), p.end()) - p.begin();
    const double rounded = std::round(p[static_cast<size_t>(best)] * 1e4) / 1e4;
    return head + ": " + class_name(model_, best) + "  (" + format_double(rounded) + ")";
  }

  const Predictor& model_;
  Form form_;
  std::function<void(const std::string&)> line_;
  std::unique_ptr<AtomicFile> file_;
  int64_t row_ = 0;
};

}  // namespace

std::vector<Decision> decide(const Predictor& model, const Array& output) {
  std::vector<Decision> out;
  if (!is_classification(model, output)) return out;
  const Array logits = output.contiguous();
  for (int64_t i = 0; i < logits.shape[0]; ++i) {
    const auto p = probabilities(logits, i, logits.shape[1]);
    const auto best = std::max_element(p.begin(), p.end()) - p.begin();
    out.push_back({best, class_name(model, best), p[static_cast<size_t>(best)]});
  }
  return out;
}

std::unique_ptr<ResultWriter> open_results(const Predictor& model, const std::string& path,
                                           const std::function<void(const std::string&)>& line) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (path.empty()) return std::make_unique<RowResults>(model, RowResults::Form::kPlain, "", line);
  if (ending == ".npz") return std::make_unique<NpzResults>(model, path);
  if (ending == ".csv")
    return std::make_unique<RowResults>(model, RowResults::Form::kCsv, path, line);
  if (ending == ".jsonl" || ending == ".json")
    return std::make_unique<RowResults>(model, RowResults::Form::kJson, path, line);
  fail(ErrorCode::kUsage, "--output: expected a name ending in .npz, .csv or .jsonl, found '", path,
       "'");
}

}  // namespace paddle::infer
