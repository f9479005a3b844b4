#include "infer/decoded_results.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "formats/csv.h"

namespace paddle::infer {
namespace {

using Line = std::function<void(const std::string&)>;

/// Rows in the order of the input, with those that were skipped between them.
class RowWriter : public DecodedResults {
 public:
  explicit RowWriter(const std::string& path) {
    if (!path.empty()) file_ = std::make_unique<AtomicFile>(path);
  }
  void add(const InputBatch& batch, const std::vector<Decoded>& decoded) override {
    begin(!decoded.empty());
    auto skipped = batch.skipped.begin();
    for (size_t i = 0; i < decoded.size(); ++i) {
      const int64_t index = i < batch.indices.size() ? batch.indices[i] : static_cast<int64_t>(i);
      for (; skipped != batch.skipped.end() && skipped->index < index; ++skipped) skip(*skipped);
      row(index, i < batch.places.size() ? batch.places[i] : "",
          i < batch.label_texts.size() ? batch.label_texts[i] : std::nullopt, decoded[i]);
    }
    for (; skipped != batch.skipped.end(); ++skipped) skip(*skipped);
  }
  void close() override {
    begin(true);
    if (file_) file_->commit();
  }

 protected:
  /// Before the rows of a batch; `has_rows`: the decoder has run.
  virtual void begin(bool /*has_rows*/) {}
  virtual void row(int64_t index, const std::string& place, const std::optional<LabelText>& label,
                   const Decoded& decoded) = 0;
  virtual void skip(const SkippedRow& row) = 0;
  std::unique_ptr<AtomicFile> file_;
};

class JsonResults final : public RowWriter {
 public:
  /// To a file, or to `line` without one.
  JsonResults(const std::string& path, bool has_labels, Line line = {})
      : RowWriter(path), has_labels_(has_labels), line_(std::move(line)) {}

 private:
  void row(int64_t index, const std::string& place, const std::optional<LabelText>& label,
           const Decoded& decoded) override {
    nlohmann::ordered_json o;
    o["row"] = index;
    if (!place.empty()) o["source"] = place;
    if (has_labels_)
      o["label"] = label ? nlohmann::ordered_json::parse(label->json) : nlohmann::ordered_json();
    // Two objects as one.
    std::string line = dumped(o);
    line.back() = ',';
    emit(line + decoded.json.substr(1));
  }
  void skip(const SkippedRow& row) override {
    nlohmann::ordered_json o;
    o["row"] = row.index;
    o["source"] = row.place;
    o["skipped"] = row.reason;
    emit(dumped(o));
  }
  void emit(const std::string& object) {
    if (file_)
      file_->write(object + "\n");
    else
      line_(object);
  }
  static std::string dumped(const nlohmann::ordered_json& o) {
    return o.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  bool has_labels_;
  Line line_;
};

class CsvResults final : public RowWriter {
 public:
  CsvResults(const Decoder& decoder, const std::string& path, ShownColumns shown)
      : RowWriter(path), decoder_(decoder), shown_(shown) {}

 private:
  void begin(bool has_rows) override {
    if (columns_ > 0 || !has_rows) return;
    std::string header = shown_.labels ? "row,source,label" : "row,source";
    for (const std::string& name : decoder_.columns()) header += "," + formats::csv_quote(name);
    columns_ = decoder_.columns().size() + (shown_.labels ? 1 : 0);
    file_->write(header + (shown_.skipped ? ",skipped\n" : "\n"));
    for (const SkippedRow& row : waiting_) skip(row);
    waiting_.clear();
  }
  void row(int64_t index, const std::string& place, const std::optional<LabelText>& label,
           const Decoded& decoded) override {
    for (const auto& cells : decoded.cells) {
      std::string line = str(index, ",", formats::csv_quote(place));
      if (shown_.labels) line += "," + formats::csv_quote(label ? label->text : "");
      for (const std::string& cell : cells) line += "," + formats::csv_quote(cell);
      file_->write(line + (shown_.skipped ? ",\n" : "\n"));
    }
  }
  void skip(const SkippedRow& row) override {
    if (columns_ == 0) {
      waiting_.push_back(row);
      return;
    }
    file_->write(str(row.index, ",", formats::csv_quote(row.place), std::string(columns_, ','), ",",
                     formats::csv_quote(row.reason), "\n"));
  }

  const Decoder& decoder_;
  ShownColumns shown_;
  size_t columns_ = 0;  ///< 0: no header yet
  std::vector<SkippedRow> waiting_;
};

class PlainResults final : public RowWriter {
 public:
  explicit PlainResults(Line line) : RowWriter(""), line_(std::move(line)) {}

 private:
  void row(int64_t index, const std::string& place, const std::optional<LabelText>&,
           const Decoded& decoded) override {
    line_((place.empty() ? str("row ", index) : place) + ": " + decoded.text);
  }
  void skip(const SkippedRow& row) override { line_(row.place + ": skipped (" + row.reason + ")"); }
  Line line_;
};

bool is_folder(const std::string& path) {
  return path.ends_with('/') || is_directory(path) ||
         std::filesystem::path(path).extension().empty();
}

}  // namespace

std::unique_ptr<DecodedResults> open_decoded(Decoder& decoder, const std::string& path,
                                             ShownColumns shown, const Line& line) {
  if (path.empty()) return std::make_unique<PlainResults>(line);
  if (path.ends_with(".csv")) return std::make_unique<CsvResults>(decoder, path, shown);
  if (path.ends_with(".jsonl")) return std::make_unique<JsonResults>(path, shown.labels);
  if (!is_folder(path))
    fail(ErrorCode::kUsage,
         "--output: expected a name ending in .npz, .csv or .jsonl, or a folder ",
         "of pictures, found '", path, "'");
  decoder.write_pictures(path);
  return std::make_unique<PlainResults>(line);
}

std::unique_ptr<DecodedResults> json_decoded(ShownColumns shown, const Line& line) {
  return std::make_unique<JsonResults>("", shown.labels, line);
}

}  // namespace paddle::infer
