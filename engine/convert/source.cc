#include "convert/source.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "formats/gguf/reader.h"
#include "formats/hdf5/reader.h"
#include "formats/npz.h"
#include "formats/onnx/model.h"
#include "formats/paddle_params.h"
#include "formats/paddle_program.h"
#include "formats/pickle/weights.h"
#include "formats/safetensors.h"
#include "onnx/graph/evaluator.h"
#include "program/model.h"

namespace paddle::convert {
namespace {

using formats::SafetensorsReader;

/// The map from tensors to files of an index.
std::map<std::string, std::string> weight_map(const std::string& index) {
  const auto json = nlohmann::json::parse(read_file(index, uint64_t{1} << 28, ErrorCode::kModel),
                                          nullptr, /*allow_exceptions=*/false);
  const auto bad = [&](const auto&... why) { fail(ErrorCode::kModel, index, ": ", why...); };
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    bad("is not a shard index (a JSON object with a 'weight_map')");
  std::map<std::string, std::string> out;
  for (const auto& [name, file] : json["weight_map"].items()) {
    if (!file.is_string()) bad("the file of '", name, "' is not a string");
    const std::string& shard = file.get_ref<const std::string&>();
    if (shard.empty() || shard.find('/') != std::string::npos || shard == "." || shard == "..")
      bad("the file '", shard, "' of '", name, "' is not in the folder of the index");
    out[name] = shard;
  }
  return out;
}

std::string sibling_path(const std::string& path, const std::string& name) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? name : path.substr(0, slash + 1) + name;
}

/// One safetensors file, or all those that an index names.
class SafetensorsSource final : public Source {
 public:
  void add(const std::string& path) {
    files_.push_back(std::make_unique<SafetensorsReader>(path));
    for (const auto& [key, value] : files_.back()->metadata()) {
      const auto [at, first] = metadata_.emplace(key, value);
      if (!first && at->second != value)
        notes_.push_back(
            str("the metadata '", key, "' differs between the shards; '", at->second, "' is kept"));
    }
    for (const auto& e : files_.back()->entries()) {
      tensors_.push_back({e.name, e.dtype, e.shape, nullptr});
      places_.emplace_back(files_.size() - 1, &e);
    }
  }
  /// Checks that the index agrees with the files.
  void check(const std::string& index, const std::map<std::string, std::string>& map) const {
    std::set<std::string> found;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const std::string& name = tensors_[i].name;
      const std::string& file = files_[places_[i].first]->path();
      const auto said = map.find(name);
      if (said == map.end())
        fail(ErrorCode::kModel, file, ": holds '", name, "', which ", index, " does not name");
      if (sibling_path(index, said->second) != file)
        fail(ErrorCode::kModel, file, ": holds '", name, "', which should be in ", said->second);
      found.insert(name);
    }
    for (const auto& [name, file] : map)
      if (!found.count(name))
        fail(ErrorCode::kModel, sibling_path(index, file), ": lacks '", name, "', which ", index,
             " says it holds");
  }
  Array read(size_t index) const override {
    const auto& [file, entry] = places_.at(index);
    return files_[file]->read(*entry);
  }

 private:
  std::vector<std::unique_ptr<SafetensorsReader>> files_;
  std::vector<std::pair<size_t, const formats::SafetensorsEntry*>> places_;
};

class NpzSource final : public Source {
 public:
  explicit NpzSource(const std::string& path) : reader_(path, ErrorCode::kModel) {
    for (const std::string& name : reader_.names()) {
      const formats::NpyHeader header = reader_.header(name);
      if (header.dtype == DType::kString)
        notes_.push_back(str("'", name, "' holds strings and is left out"));
      else
        tensors_.push_back({name, header.dtype, header.shape, nullptr});
    }
  }
  Array read(size_t index) const override { return reader_.read(tensors_.at(index).name); }

 private:
  formats::NpzReader reader_;
};

/// Initializers that lie in graphs inside nodes.
size_t inner_initializers(const std::vector<formats::onnx::Node>& nodes) {
  size_t count = 0;
  for (const auto& node : nodes)
    for (const auto& attribute : node.attributes)
      for (const auto& graph : attribute.graphs)
        count += graph->initializers.size() + inner_initializers(graph->nodes);
  return count;
}

class OnnxSource final : public Source {
 public:
  explicit OnnxSource(const std::string& path) : model_(formats::onnx::read_model(path)) {
    const auto& graph = model_.graph;
    for (const auto& t : graph.initializers)
      add(t.name, t.dtype, t.shape, [&t] { return t.array; });
    for (const auto& [name, sparse] : graph.sparse_initializers)
      add(name, sparse.values.dtype, sparse.shape,
          [&data = sparse] { return onnx::dense_value(data).tensor().array(); });
    if (const size_t inner = inner_initializers(graph.nodes))
      notes_.push_back(str(inner, " initializers of graphs inside nodes are left out"));
  }
  Array read(size_t index) const override { return readers_.at(index)(); }

 private:
  void add(const std::string& name, DType dtype, const Dims& shape, std::function<Array()> reader) {
    if (dtype == DType::kString) {
      notes_.push_back(str("'", name, "' holds strings and is left out"));
      return;
    }
    tensors_.push_back({name, dtype, shape, nullptr});
    readers_.push_back(std::move(reader));
  }
  formats::onnx::Model model_;
  std::vector<std::function<Array()>> readers_;
};

class GgufSource final : public Source {
 public:
  explicit GgufSource(std::shared_ptr<const formats::gguf::Reader> reader)
      : reader_(std::move(reader)) {
    size_t quantized = 0;
    for (const formats::gguf::TensorInfo& tensor : reader_->tensors()) {
      const std::string type = formats::gguf::type_name(tensor.type);
      const DType dtype = type == "F16" ? DType::kF16 : type == "BF16" ? DType::kBF16 : DType::kF32;
      quantized += type != "F16" && type != "BF16" && type != "F32";
      tensors_.push_back({tensor.name, dtype, tensor.shape, nullptr});
    }
    if (quantized > 0) notes_.push_back(str(quantized, " block-quantized tensors become float32"));
    notes_.push_back("the metadata of the GGUF file is left out");
  }
  Array read(size_t index) const override {
    return reader_->read_float(reader_->tensors().at(index)).cast(tensors_.at(index).dtype);
  }
  std::optional<PackedWeight> read_blocks(size_t index) const override {
    const formats::gguf::TensorInfo& tensor = reader_->tensors().at(index);
    if (tensor.shape.size() != 2 || tensor.shape[0] < 1) return std::nullopt;
    return mapped_rows(reader_, tensor, tensor.shape[0], tensor.shape[1]);
  }

 private:
  std::shared_ptr<const formats::gguf::Reader> reader_;
};

class PickleSource final : public Source {
 public:
  explicit PickleSource(const std::string& path) : file_(path) {
    for (const auto& tensor : file_.tensors())
      tensors_.push_back({tensor.name, tensor.dtype, tensor.shape, nullptr});
    notes_ = file_.notes();
  }
  Array read(size_t index) const override { return file_.read(index); }

 private:
  formats::pickle::WeightFile file_;
};

class PaddleParamsSource final : public Source {
 public:
  explicit PaddleParamsSource(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      const formats::PaddleParams& file = *files_.emplace_back(new formats::PaddleParams(path));
      for (size_t i = 0; i < file.parameters().size(); ++i) {
        const formats::PaddleParameter& parameter = file.parameters()[i];
        tensors_.push_back({parameter.name, parameter.dtype, parameter.shape, nullptr});
        places_.emplace_back(files_.size() - 1, i);
      }
    }
    if (files_.size() == 1 && !files_[0]->has_names())
      notes_.push_back(
          "there is no .pdmodel or .json file next to it with the names of its "
          "parameters; they are numbered");
  }
  Array read(size_t index) const override {
    const auto& [file, at] = places_.at(index);
    return files_[file]->read(at);
  }

 private:
  std::vector<std::unique_ptr<formats::PaddleParams>> files_;
  std::vector<std::pair<size_t, size_t>> places_;
};

class Hdf5Source final : public Source {
 public:
  explicit Hdf5Source(const std::string& path) : reader_(path) {
    for (const auto& dataset : reader_.datasets())
      tensors_.push_back({dataset.name, dataset.dtype, dataset.shape, nullptr});
    for (const std::string& name : reader_.others())
      notes_.push_back(str("'", name, "' does not hold numbers and is left out"));
    for (const std::string& name : reader_.links())
      notes_.push_back(str("'", name, "' is a link and is left out"));
  }
  Array read(size_t index) const override { return reader_.read(index); }

 private:
  formats::Hdf5Reader reader_;
};

std::unique_ptr<Source> open_shards(const std::string& index) {
  const auto map = weight_map(index);
  auto out = std::make_unique<SafetensorsSource>();
  for (const std::string& file : shard_files(index)) out->add(file);
  out->check(index, map);
  return out;
}

std::unique_ptr<Source> open_file(const std::string& path) {
  auto out = std::make_unique<SafetensorsSource>();
  out->add(path);
  return out;
}

std::unique_ptr<Source> open_folder(const std::string& path) {
  if (!is_directory(path)) fail(ErrorCode::kUsage, path, ": is not a folder");
  for (const std::string name : {"model.safetensors", "model.safetensors.index.json"})
    if (file_exists(path + "/" + name))
      return name.ends_with(".json") ? open_shards(path + "/" + name)
                                     : open_file(path + "/" + name);
  return open_file(program::find_model_folder(path) + "/model.safetensors");
}

std::unique_ptr<Source> open_as(const std::string& path, Format format) {
  switch (format) {
    case Format::kSafetensors:
      return open_file(path);
    case Format::kSharded:
      return open_shards(path);
    case Format::kNpz:
      return std::make_unique<NpzSource>(path);
    case Format::kFolder:
      return open_folder(path);
    case Format::kOnnx:
      return std::make_unique<OnnxSource>(path);
    case Format::kGguf:
      return gguf_source(
          std::make_shared<const formats::gguf::Reader>(formats::gguf::Reader::open(path)));
    case Format::kPaddle:
      if (path.ends_with(".pdiparams"))
        return std::make_unique<PaddleParamsSource>(std::vector{path});
      if (formats::is_paddle_program(path)) {
        const auto files = formats::paddle_parameter_files(formats::paddle_program_file(path));
        if (files[0].ends_with(".pdparams")) return std::make_unique<PickleSource>(files[0]);
        return std::make_unique<PaddleParamsSource>(files);
      }
      [[fallthrough]];
    case Format::kTorch:
      return std::make_unique<PickleSource>(path);
    case Format::kHdf5:
      return std::make_unique<Hdf5Source>(path);
  }
  fail(ErrorCode::kInternal, "open_as: unknown format");
}

}  // namespace

uint64_t StoredTensor::bytes() const {
  const int64_t values = element_count(std::span<const int64_t>(shape));
  return static_cast<uint64_t>(blocks ? values / blocks->values * blocks->bytes
                                      : storage_bytes(dtype, values));
}

std::vector<std::string> shard_files(const std::string& index) {
  std::set<std::string> files;
  for (const auto& [name, file] : weight_map(index)) files.insert(sibling_path(index, file));
  return {files.begin(), files.end()};
}

std::unique_ptr<Source> gguf_source(std::shared_ptr<const formats::gguf::Reader> reader) {
  return std::make_unique<GgufSource>(std::move(reader));
}

std::unique_ptr<Source> open_source(const std::string& path, Format format) {
  if (!file_exists(path)) fail(ErrorCode::kUsage, path, ": no such file or folder");
  return open_as(path, format);
}

}  // namespace paddle::convert
