#include "infer/results.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "formats/csv.h"
#include "formats/npz.h"

namespace paddle::infer {
std::optional<Array> joined_batches(const std::vector<Array>& batches) {
  if (batches.size() == 1) return batches[0];
  Dims shape = batches[0].shape;
  int64_t rows = 0;
  for (const Array& each : batches) {
    const bool fits =
        each.shape.size() == shape.size() &&
        (shape.empty() || std::equal(shape.begin() + 1, shape.end(), each.shape.begin() + 1));
    if (!fits) return std::nullopt;
    rows += shape.empty() ? 1 : each.shape[0];
  }
  if (shape.empty()) shape.push_back(0);
  shape[0] = rows;
  Array out = Array::empty(batches[0].dtype, shape);
  auto* to = static_cast<std::byte*>(out.raw());
  for (const Array& each : batches) {
    const auto bytes = static_cast<size_t>(storage_bytes(each.dtype, each.size()));
    std::memcpy(to, each.raw(), bytes);
    to += bytes;
  }
  return out;
}

void JoinedOutputs::add(const InputBatch& batch, const std::vector<Array>& outputs) {
  for (const SkippedRow& row : batch.skipped) skipped_.push_back(row.index);
  if (outputs.empty()) return;
  parts_.resize(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Array packed = outputs[i].contiguous();
    Array own = Array::empty(packed.dtype, packed.shape);
    std::memcpy(own.raw(), packed.raw(), static_cast<size_t>(storage_bytes(own.dtype, own.size())));
    parts_[i].push_back(own);
  }
}

formats::NamedArrays JoinedOutputs::arrays(const std::vector<std::string>& names) const {
  formats::NamedArrays arrays;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const std::optional<Array> all = joined_batches(parts_[i]);
    if (!all)
      fail(ErrorCode::kData,
           "outputs of different batches have different shapes; give a --batch that takes all "
           "rows");
    arrays.emplace_back(names[i], with_skipped(*all));
  }
  if (!skipped_.empty())
    arrays.emplace_back("skipped", Array::from<int64_t>(skipped_, {std::ssize(skipped_)}));
  return arrays;
}

/// Puts rows without a value where rows were skipped.
Array JoinedOutputs::with_skipped(const Array& rows) const {
  if (skipped_.empty() || rows.shape.empty()) return rows;
  Array out = rows;
  out.shape[0] += static_cast<int64_t>(skipped_.size());
  out = Array::zeros(rows.dtype, out.shape);
  if (is_float(rows.dtype) && info(rows.dtype).has_kernels)
    visit_float(rows.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::fill_n(out.data<T>(), out.size(), T(std::numeric_limits<float>::quiet_NaN()));
    });
  if (rows.size() == 0) return out;
  const auto row_bytes =
      static_cast<size_t>(storage_bytes(rows.dtype, rows.size() / rows.shape[0]));
  const auto* from = static_cast<const std::byte*>(rows.raw());
  auto* to = static_cast<std::byte*>(out.raw());
  auto skipped = skipped_.begin();
  for (int64_t row = 0; row < out.shape[0]; ++row, to += row_bytes) {
    if (skipped != skipped_.end() && *skipped == row) {
      ++skipped;
      continue;
    }
    std::memcpy(to, from, row_bytes);
    from += row_bytes;
  }
  return out;
}

namespace {

/// Probabilities of a row of class scores, which may be logits or probabilities already.
std::vector<double> probabilities(const program::Model& model, const Array& scores, int64_t row,
                                  int64_t classes) {
  std::vector<double> p(static_cast<size_t>(classes));
  for (int64_t c = 0; c < classes; ++c)
    p[static_cast<size_t>(c)] = scores.number(row * classes + c);
  const program::Scores kind = model.scores(0);
  if (model.metadata().is_multi_label && !model.is_sigmoid(0) &&
      kind != program::Scores::kProbabilities) {
    for (double& v : p) v = 1 / (1 + std::exp(-v));
    return p;
  }
  if (model.is_sigmoid(0) || kind == program::Scores::kProbabilities) return p;
  if (kind == program::Scores::kLogProbabilities) {
    for (double& v : p) v = std::exp(v);
    return p;
  }
  const double top = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& v : p) sum += v = std::exp(v - top);
  for (double& v : p) v /= sum;
  return p;
}

bool is_classification(const program::Model& model, const Array& output) {
  return output.ndim() == 2 && is_float(output.dtype) && model.metadata().class_count > 1 &&
         output.shape[1] == model.metadata().class_count;
}

/// Any of the classes may hold: a probability for each.
bool is_multi_label(const program::Model& model, const Array& output) {
  return output.ndim() == 2 && is_float(output.dtype) && model.metadata().is_multi_label &&
         output.shape[1] == std::ssize(model.metadata().classes);
}

/// Whether the first output is shown as classes.
bool has_classes(const program::Model& model, const Array& output) {
  return is_classification(model, output) || is_multi_label(model, output);
}

std::string class_name(const program::Model& model, int64_t index) {
  const auto& names = model.metadata().classes;
  return index < static_cast<int64_t>(names.size()) ? names[static_cast<size_t>(index)]
                                                    : std::to_string(index);
}

/// The outputs of all batches in one file.
class NpzResults final : public ResultWriter {
 public:
  NpzResults(const program::Model& model, std::string path)
      : model_(model), path_(std::move(path)) {}
  void add(const InputBatch& batch, const std::vector<Array>& outputs) override {
    joined_.add(batch, outputs);
  }
  void close() override { formats::write_npz(path_, joined_.arrays(model_.outputs())); }

 private:
  const program::Model& model_;
  std::string path_;
  JoinedOutputs joined_;
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
  RowResults(const program::Model& model, Form form, std::string path, ShownColumns shown,
             std::function<void(const std::string&)> line)
      : model_(model), form_(form), line_(std::move(line)), shown_(shown) {
    if (!path.empty()) file_ = std::make_unique<AtomicFile>(path);
  }
  void add(const InputBatch& batch, const std::vector<Array>& outputs) override {
    std::vector<Array> packed;
    for (const Array& a : outputs) packed.push_back(a.contiguous());
    if (form_ == Form::kCsv && !header_ && !packed.empty()) {
      emit(csv_header(packed));
      header_ = true;
      for (const SkippedRow& row : waiting_) emit(skipped_row(row));
      waiting_.clear();
    }
    auto skipped = batch.skipped.begin();
    for (int64_t i = 0; i < batch.rows; ++i) {
      const auto at = static_cast<size_t>(i);
      Row row;
      row.index = at < batch.indices.size() ? batch.indices[at] : i;
      if (at < batch.places.size()) row.place = batch.places[at];
      if (at < batch.labels.size()) row.label = batch.labels[at];
      if (at < batch.label_texts.size()) row.text = batch.label_texts[at];
      for (; skipped != batch.skipped.end() && skipped->index < row.index; ++skipped)
        skip(*skipped);
      emit(form_ == Form::kJson  ? json_row(packed, i, row)
           : form_ == Form::kCsv ? csv_row(packed, i, row)
                                 : plain_row(packed, i, row));
    }
    for (; skipped != batch.skipped.end(); ++skipped) skip(*skipped);
  }
  void close() override {
    if (!waiting_.empty()) {  // nothing but skipped rows
      emit("row,source,skipped");
      columns_ = 0;
      for (const SkippedRow& row : waiting_) emit(skipped_row(row));
    }
    if (file_) file_->commit();
  }

 private:
  struct Row {
    int64_t index = 0;
    std::string place = {};
    std::optional<double> label = {};
    std::optional<LabelText> text = {};
  };
  void skip(const SkippedRow& row) {
    if (form_ == Form::kCsv && !header_)
      waiting_.push_back(row);
    else
      emit(skipped_row(row));
  }
  std::string skipped_row(const SkippedRow& row) const {
    if (form_ == Form::kPlain) return row.place + ": skipped (" + row.reason + ")";
    if (form_ == Form::kCsv)
      return str(row.index, ",", formats::csv_quote(row.place), std::string(columns_, ','), ",",
                 formats::csv_quote(row.reason));
    nlohmann::ordered_json o;
    o["row"] = row.index;
    o["source"] = row.place;
    o["skipped"] = row.reason;
    return o.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  /// The name of a class, a number, or what the input has instead; null without a label.
  nlohmann::ordered_json label_of(const Row& row) const {
    if (row.text) return nlohmann::ordered_json::parse(row.text->json);
    const program::ModelMetadata& metadata = model_.metadata();
    if (!row.label ||
        (metadata.ignore_index && *row.label == static_cast<double>(*metadata.ignore_index)))
      return {};
    const bool is_whole = *row.label == std::trunc(*row.label) && std::abs(*row.label) < 0x1p53;
    if (is_whole && metadata.class_count > 0)
      return class_name(model_, static_cast<int64_t>(*row.label));
    if (is_whole) return static_cast<int64_t>(*row.label);
    return *row.label;
  }
  /// The most likely class with its probability, or all that are likelier than not.
  std::vector<int64_t> chosen(const Array& scores, const std::vector<double>& p) const {
    std::vector<int64_t> out;
    if (!is_multi_label(model_, scores)) return {std::max_element(p.begin(), p.end()) - p.begin()};
    for (size_t c = 0; c < p.size(); ++c)
      if (p[c] >= 0.5) out.push_back(static_cast<int64_t>(c));
    return out;
  }
  std::vector<std::string> names_of(const std::vector<int64_t>& classes) const {
    std::vector<std::string> out;
    for (const int64_t c : classes) out.push_back(class_name(model_, c));
    return out;
  }
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
  std::string json_row(const std::vector<Array>& outputs, int64_t i, const Row& row) const {
    nlohmann::ordered_json o;
    o["row"] = row.index;
    if (!row.place.empty()) o["source"] = row.place;
    if (shown_.labels) o["label"] = label_of(row);
    if (has_classes(model_, outputs[0])) {
      const auto p = probabilities(model_, outputs[0], i, outputs[0].shape[1]);
      const auto best = chosen(outputs[0], p);
      if (is_multi_label(model_, outputs[0])) {
        o["classes"] = names_of(best);
        for (size_t c = 0; c < p.size(); ++c)
          o["probabilities"][class_name(model_, static_cast<int64_t>(c))] = p[c];
      } else {
        o["class"] = class_name(model_, best[0]);
        o["probability"] = p[static_cast<size_t>(best[0])];
        o["probabilities"] = p;
      }
    } else {
      for (size_t k = 0; k < outputs.size(); ++k)
        o[model_.outputs()[k]] =
            json_value(outputs[k], i * row_size(outputs[k]), row_shape(outputs[k]), 0);
    }
    return o.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  std::string csv_header(const std::vector<Array>& outputs) {
    std::string out = value_columns(outputs);
    columns_ = static_cast<size_t>(std::count(out.begin(), out.end(), ','));
    return "row,source" + out + (shown_.skipped ? ",skipped" : "");
  }
  std::string value_columns(const std::vector<Array>& outputs) const {
    std::string out = shown_.labels ? ",label" : "";
    if (has_classes(model_, outputs[0])) {
      out += is_multi_label(model_, outputs[0]) ? ",classes" : ",class,probability";
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
  std::string csv_row(const std::vector<Array>& outputs, int64_t i, const Row& row) const {
    std::string out = str(row.index, ",", formats::csv_quote(row.place));
    if (shown_.labels) {
      const auto label = label_of(row);
      out += ",";
      if (row.text)
        out += formats::csv_quote(row.text->text);
      else if (label.is_string())
        out += formats::csv_quote(label.get<std::string>());
      else if (!label.is_null())
        out += label.dump();
    }
    if (has_classes(model_, outputs[0])) {
      const auto p = probabilities(model_, outputs[0], i, outputs[0].shape[1]);
      const auto best = chosen(outputs[0], p);
      out += "," + formats::csv_quote(join(names_of(best), "|"));
      if (!is_multi_label(model_, outputs[0]))
        out += "," + format_double(p[static_cast<size_t>(best[0])]);
      for (const double v : p) out += "," + format_double(v);
      return out + (shown_.skipped ? "," : "");
    }
    for (const Array& a : outputs)
      for (int64_t c = 0; c < row_size(a); ++c) {
        const int64_t at = i * row_size(a) + c;
        out +=
            "," + (is_float(a.dtype) ? format_double(a.number(at)) : std::to_string(a.integer(at)));
      }
    return out + (shown_.skipped ? "," : "");
  }
  std::string plain_row(const std::vector<Array>& outputs, int64_t i, const Row& row) const {
    const std::string head = row.place.empty() ? str("row ", row.index) : row.place;
    if (!has_classes(model_, outputs[0])) {
      Row without_place = row;
      without_place.place.clear();
      return head + ": " + json_row(outputs, i, without_place);
    }
    const auto p = probabilities(model_, outputs[0], i, outputs[0].shape[1]);
    if (is_multi_label(model_, outputs[0])) {
      std::vector<std::string> shown;
      for (const int64_t c : chosen(outputs[0], p))
        shown.push_back(str(class_name(model_, c), "  (",
                            format_double(std::round(p[static_cast<size_t>(c)] * 1e4) / 1e4), ")"));
      return head + ": " + (shown.empty() ? "no class" : join(shown, ", "));
    }
    const auto best = std::max_element(p.begin(), p.end()) - p.begin();
    const double rounded = std::round(p[static_cast<size_t>(best)] * 1e4) / 1e4;
    return head + ": " + class_name(model_, best) + "  (" + format_double(rounded) + ")";
  }

  const program::Model& model_;
  Form form_;
  std::function<void(const std::string&)> line_;
  ShownColumns shown_;
  std::unique_ptr<AtomicFile> file_;
  bool header_ = false;
  size_t columns_ = 0;               ///< of CSV, between `source` and `skipped`
  std::vector<SkippedRow> waiting_;  ///< for the header
};

}  // namespace

std::vector<Decision> decide(const program::Model& model, const Array& output) {
  std::vector<Decision> out;
  if (!is_classification(model, output)) return out;
  const Array scores = output.contiguous();
  for (int64_t i = 0; i < scores.shape[0]; ++i) {
    const auto p = probabilities(model, scores, i, scores.shape[1]);
    const auto best = std::max_element(p.begin(), p.end()) - p.begin();
    out.push_back({best, class_name(model, best), p[static_cast<size_t>(best)]});
  }
  return out;
}

std::unique_ptr<ResultWriter> open_results(const program::Model& model, const std::string& path,
                                           ShownColumns shown,
                                           const std::function<void(const std::string&)>& line) {
  using Form = RowResults::Form;
  const std::string ending = std::filesystem::path(path).extension().string();
  if (path.empty()) return std::make_unique<RowResults>(model, Form::kPlain, "", shown, line);
  if (ending == ".npz") return std::make_unique<NpzResults>(model, path);
  if (ending == ".csv") return std::make_unique<RowResults>(model, Form::kCsv, path, shown, line);
  if (ending == ".jsonl" || ending == ".json")
    return std::make_unique<RowResults>(model, Form::kJson, path, shown, line);
  fail(ErrorCode::kUsage, "--output: expected a name ending in .npz, .csv or .jsonl, found '", path,
       "'");
}

std::unique_ptr<ResultWriter> json_results(const program::Model& model, ShownColumns shown,
                                           const std::function<void(const std::string&)>& line) {
  return std::make_unique<RowResults>(model, RowResults::Form::kJson, "", shown, line);
}

}  // namespace paddle::infer
