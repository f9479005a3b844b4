#include "convert/target.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <numeric>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "formats/gguf/writer.h"
#include "formats/npz.h"
#include "formats/safetensors.h"
#include "program/model.h"

namespace paddle::convert {
namespace {

/// Files that stay open until all are written.
constexpr size_t kMaxShards = 500;

std::string weights_of(const std::string& folder) {
  return program::find_model_folder(folder) + "/model.safetensors";
}

class NpzTarget final : public Target {
 public:
  NpzTarget(const std::string& path, size_t count) : writer_(path), order_(count) {
    std::iota(order_.begin(), order_.end(), size_t{0});
  }
  const std::vector<size_t>& order() const override { return order_; }
  void add(const StoredTensor& tensor, const Array& array) override {
    writer_.add(tensor.name, array);
  }
  void close() override { writer_.close(); }

 private:
  formats::NpzWriter writer_;
  std::vector<size_t> order_;
};

class GgufTarget final : public Target {
 public:
  GgufTarget(const TargetOptions& options, const std::vector<StoredTensor>& tensors)
      : writer_(options.path, described(tensors), options.metadata), order_(tensors.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
  }
  const std::vector<size_t>& order() const override { return order_; }
  void add(const StoredTensor&, const Array& array) override { writer_.add(array); }
  void close() override { writer_.close(); }

 private:
  static std::vector<formats::gguf::WrittenTensor> described(
      const std::vector<StoredTensor>& tensors) {
    std::vector<formats::gguf::WrittenTensor> out;
    for (const StoredTensor& t : tensors)
      out.push_back(
          {t.name, t.blocks ? t.blocks->type : formats::gguf::type_of_dtype(t.dtype), t.shape});
    return out;
  }

  formats::gguf::Writer writer_;
  std::vector<size_t> order_;
};

/// One file, or several with an index that is written last. Shards are written one after the other
/// and wait under another name until all are there.
class SafetensorsTarget final : public Target {
 public:
  SafetensorsTarget(std::vector<std::string> files, const std::vector<size_t>& shard_of,
                    const std::vector<StoredTensor>& tensors, const TargetOptions& options)
      : files_(std::move(files)),
        metadata_(options.metadata),
        journal_(options.journal),
        current_(options.finished) {
    std::map<std::string, size_t> positions;
    entries_.resize(files_.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      positions[tensors[i].name] = i;
      entries_[shard_of[i]].push_back({.name = tensors[i].name,
                                       .dtype = tensors[i].dtype,
                                       .shape = tensors[i].shape,
                                       .begin = 0,
                                       .end = 0});
    }
    for (auto& each : entries_) formats::SafetensorsWriter::sort(each);
    for (size_t f = current_; f < files_.size(); ++f)
      for (const auto& e : entries_[f]) order_.push_back(positions.at(e.name));
  }
  void set_index(std::string path, std::string content) {
    index_ = std::move(path);
    content_ = std::move(content);
  }
  const std::vector<size_t>& order() const override { return order_; }
  void add(const StoredTensor&, const Array& array) override {
    if (!writer_)
      writer_ = std::make_unique<formats::SafetensorsWriter>(written_name(current_),
                                                             entries_.at(current_), metadata_);
    writer_->add(array);
    if (++added_ < entries_[current_].size()) return;
    writer_->close();
    writer_.reset();
    added_ = 0;
    ++current_;
    if (journal_) journal_->write(current_);
  }
  void close() override {
    if (index_.empty()) return;
    for (size_t f = 0; f < files_.size(); ++f) {
      std::error_code error;
      std::filesystem::rename(written_name(f), files_[f], error);
      if (error) fail(ErrorCode::kDevice, "cannot write '", files_[f], "': ", error.message());
    }
    write_file_atomically(index_, content_);
    if (journal_) journal_->remove();
  }

 private:
  std::string written_name(size_t f) const {
    return index_.empty() ? files_[f] : waiting_name(files_[f]);
  }

  std::vector<std::string> files_;
  std::map<std::string, std::string> metadata_;
  const Journal* journal_;
  std::vector<std::vector<formats::SafetensorsEntry>> entries_;  ///< of each file
  std::vector<size_t> order_;
  std::unique_ptr<formats::SafetensorsWriter> writer_;  ///< of the current file
  size_t current_, added_ = 0;
  std::string index_, content_;
};

/// Tensors in their order, as many to a shard as fit.
std::vector<size_t> shards_of(const std::vector<StoredTensor>& tensors, uint64_t most) {
  std::vector<size_t> out;
  size_t shard = 0;
  uint64_t bytes = 0;
  for (const StoredTensor& t : tensors) {
    if (bytes > 0 && bytes + t.bytes() > most) {
      ++shard;
      bytes = 0;
    }
    bytes += t.bytes();
    out.push_back(shard);
  }
  return out;
}

std::string index_path(const std::string& path) {
  constexpr std::string_view kIndex = ".index.json", kFile = ".safetensors";
  if (path.ends_with(kIndex)) return path;
  return (path.ends_with(kFile) ? path : path + std::string(kFile)) + std::string(kIndex);
}

/// "model-00001-of-00003.safetensors" next to "model.safetensors.index.json".
std::vector<std::string> shard_names(const std::string& index, size_t count) {
  std::string stem = index.substr(0, index.size() - std::string_view(".index.json").size());
  if (stem.ends_with(".safetensors"))
    stem.resize(stem.size() - std::string_view(".safetensors").size());
  std::vector<std::string> out;
  for (size_t i = 1; i <= count; ++i) {
    const std::string number = fmt::format("-{:05}-of-{:05}.safetensors", i, count);
    out.push_back(stem + number);
  }
  return out;
}

std::string index_content(const std::vector<StoredTensor>& tensors,
                          const std::vector<std::string>& files,
                          const std::vector<size_t>& shard_of) {
  nlohmann::json map = nlohmann::json::object();
  uint64_t total = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& file = files[shard_of[i]];
    map[tensors[i].name] = file.substr(file.rfind('/') + 1);
    total += tensors[i].bytes();
  }
  return nlohmann::ordered_json{{"metadata", {{"total_size", total}}}, {"weight_map", map}}.dump(
             2) +
         "\n";
}

}  // namespace

bool can_hold(Format format, DType dtype) {
  if (format == Format::kGguf) return formats::gguf::type_of_dtype(dtype) >= 0;
  return format == Format::kNpz ? formats::npy_has(dtype) : formats::safetensors_has(dtype);
}

DType wider_type(Format format, DType dtype) {
  const auto candidates = [&]() -> std::vector<DType> {
    switch (info(dtype).kind) {
      case DTypeKind::kSigned:
        return {DType::kI8};
      case DTypeKind::kUnsigned:
        return {DType::kU8};
      case DTypeKind::kFloat:
        return {DType::kF32};
      default:
        return {};
    }
  }();
  for (const DType wider : candidates)
    if (can_hold(format, wider)) return wider;
  return dtype;
}

std::vector<std::string> target_files(const TargetOptions& options,
                                      const std::vector<StoredTensor>& tensors) {
  if (options.format == Format::kFolder) return {weights_of(options.path)};
  if (options.format != Format::kSharded) return {options.path};
  const auto shards = shards_of(tensors, options.shard_bytes);
  const std::string index = index_path(options.path);
  auto files = shard_names(index, shards.empty() ? 1 : shards.back() + 1);
  if (files.size() > kMaxShards)
    fail(ErrorCode::kUsage, "--shard-size would make ", files.size(), " files, at most ",
         kMaxShards, " are allowed; name a larger size");
  files.push_back(index);
  return files;
}

void check_folder(const std::string& folder, const std::vector<StoredTensor>& tensors) {
  const std::string place = program::find_model_folder(folder);
  if (file_exists(place + "/optimizer.safetensors"))
    fail(ErrorCode::kUsage, place, ": is a checkpoint, whose weights belong to its optimizer's ",
         "state; write a file and start a run from it with paddle-train --init");
  const formats::SafetensorsReader reader(place + "/model.safetensors");
  std::vector<std::string> names;
  for (const StoredTensor& t : tensors) names.push_back(t.name);
  for (const auto& needed : reader.entries()) {
    const auto given = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const auto& t) { return t.name == needed.name; });
    if (given == tensors.end())
      fail(ErrorCode::kModel, "the model in ", place, " needs '", needed.name,
           "', which is not given", did_you_mean(needed.name, names));
    if (given->shape != needed.shape || given->dtype != needed.dtype)
      fail(ErrorCode::kModel, "'", needed.name, "' is ", text(given->dtype), str(given->shape),
           ", the model in ", place, " needs ", text(needed.dtype), str(needed.shape),
           given->shape == needed.shape ? " (--dtype casts)" : "");
  }
  for (const StoredTensor& t : tensors)
    if (!reader.find(t.name))
      fail(ErrorCode::kModel, "the model in ", place, " has no '", t.name,
           "'; leave it out with --exclude or a rule");
}

std::unique_ptr<Target> open_target(const TargetOptions& options,
                                    const std::vector<StoredTensor>& tensors) {
  if (options.format == Format::kNpz)
    return std::make_unique<NpzTarget>(options.path, tensors.size());
  if (options.format == Format::kGguf) return std::make_unique<GgufTarget>(options, tensors);
  auto files = target_files(options, tensors);
  if (options.format != Format::kSharded)
    return std::make_unique<SafetensorsTarget>(files, std::vector<size_t>(tensors.size(), 0),
                                               tensors, options);
  const std::string index = files.back();
  files.pop_back();
  const auto shards = shards_of(tensors, options.shard_bytes);
  const std::string content = index_content(tensors, files, shards);
  auto out = std::make_unique<SafetensorsTarget>(files, shards, tensors, options);
  out->set_index(index, content);
  return out;
}

}  // namespace paddle::convert
