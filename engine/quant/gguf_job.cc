#include "quant/gguf_job.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "formats/gguf/blocks.h"
#include "formats/gguf/quantize.h"
#include "formats/gguf/writer.h"
#include "quant/function_runner.h"

namespace paddle::quant {
namespace {

namespace gguf = formats::gguf;

/// The type with blocks of 32 that stands in for a k-quant where rows do not fill blocks of 256, as
/// in llama.cpp; null for other types.
const gguf::BlockType* stand_in(const gguf::BlockType& type) {
  const std::string_view name = type.name;
  return name == "q4_k"   ? gguf::find_block_type("q5_0")
         : name == "q5_k" ? gguf::find_block_type("q5_1")
         : name == "q6_k" ? gguf::find_block_type("q8_0")
                          : nullptr;
}

/// The type of a tensor in the output, and why it is not the wanted one.
int64_t type_after(const gguf::TensorInfo& tensor, const gguf::BlockType& wanted,
                   const std::vector<std::string>& keep, std::string& why) {
  for (const std::string& pattern : keep)
    if (matches_pattern(pattern, tensor.name)) {
      why = "--keep-float " + pattern;
      return tensor.type;
    }
  if (tensor.shape.size() < 2) {
    why = "it is not a matrix";
    return tensor.type;
  }
  const gguf::BlockType* type = &wanted;
  while (type && tensor.shape.back() % type->values != 0) {
    why = str("its rows of ", tensor.shape.back(), " do not fill blocks of ", wanted.values);
    type = stand_in(*type);
  }
  return type ? type->type : tensor.type;
}

/// ggml's number of a file that is mostly of this type.
uint32_t file_type(const gguf::BlockType& type) {
  switch (type.type) {
    case 2:
      return 2;
    case 3:
      return 3;
    case 6:
      return 8;
    case 7:
      return 9;
    case 12:
      return 14;  // MOSTLY_Q4_K_S: every matrix
    case 13:
      return 16;
    case 14:
      return 18;
    default:
      return 7;
  }
}

double sqnr_of(const gguf::BlockType& type, const Array& values, gguf::BlockScales scales) {
  const auto blocks = gguf::quantize(
      type, std::span<const float>(values.data<float>(), static_cast<size_t>(values.size())),
      scales);
  const gguf::BlockFormat& format = *gguf::find_block_format(type.type);
  Array found = Array::empty(DType::kF32, values.shape);
  for (int64_t b = 0; b < values.size() / type.values; ++b)
    format.dequantize(blocks.data() + b * type.bytes, found.data<float>() + b * type.values);
  Sqnr sqnr;
  sqnr.add(values, found);
  return sqnr.decibels();
}

}  // namespace

GgufReport quantize_gguf(const GgufJob& job, bool dry_run, const Progress& progress) {
  const gguf::BlockType* const type = gguf::find_block_type(job.type);
  ensure(type != nullptr, "quantize_gguf: not a type of blocks");
  const gguf::Reader file = gguf::Reader::open(job.model);
  std::vector<std::string> names;
  for (const gguf::TensorInfo& tensor : file.tensors()) names.push_back(tensor.name);
  for (const std::string& pattern : job.keep_float)
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return matches_pattern(pattern, name); }))
      fail(ErrorCode::kConfig, "--keep-float: no tensor matches '", pattern, "'",
           did_you_mean(pattern, names));
  GgufReport report;
  std::vector<gguf::WrittenTensor> written;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    GgufTensor entry{tensor.name, gguf::type_name(tensor.type), "", 0, ""};
    const int64_t after = type_after(tensor, *type, job.keep_float, entry.why);
    entry.after = gguf::type_name(after);
    written.push_back({tensor.name, after, tensor.shape});
    report.bytes_before += tensor.bytes;
    report.bytes_after +=
        gguf::bytes_of(after, element_count(std::span<const int64_t>(tensor.shape)));
    report.tensors.push_back(std::move(entry));
  }
  if (dry_run) return report;
  if (!job.overwrite && file_exists(job.output))
    fail(ErrorCode::kUsage, job.output, ": is there already (--overwrite replaces it)");
  // The file's type is stated in its metadata.
  std::string stated(8, '\0');
  const uint32_t fields[] = {4, file_type(*type)};
  std::copy_n(reinterpret_cast<const char*>(fields), stated.size(), stated.data());
  std::vector<gguf::RawValue> metadata = file.raw_metadata();
  for (gguf::RawValue& each : metadata)
    if (each.key == "general.file_type") each.bytes = stated;
  const auto alignment = static_cast<uint64_t>(file.integer("general.alignment").value_or(32));
  gguf::Writer writer(job.output, written, metadata, alignment);
  for (size_t i = 0; i < written.size(); ++i) {
    const gguf::TensorInfo& tensor = file.tensors()[i];
    if (written[i].type == tensor.type) {
      writer.add_bytes({tensor.data, static_cast<size_t>(tensor.bytes)});
      continue;
    }
    progress({str(tensor.name, " (", i + 1, " of ", written.size(), ")"), static_cast<int64_t>(i),
              static_cast<int64_t>(written.size())});
    const Array values = file.read_float(tensor).contiguous();
    report.tensors[i].sqnr_db =
        sqnr_of(*gguf::find_block_type(written[i].type), values, job.scales);
    writer.add(values, job.scales);
  }
  writer.close();
  return report;
}

std::string gguf_report_json(const GgufJob& job, const GgufReport& report) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const GgufTensor& each : report.tensors) {
    nlohmann::ordered_json entry = {
        {"name", each.name}, {"before", each.before}, {"after", each.after}};
    if (each.before != each.after) entry["sqnr_db"] = each.sqnr_db;
    if (!each.why.empty()) entry["why"] = each.why;
    tensors.push_back(std::move(entry));
  }
  return nlohmann::ordered_json{
      {"version", 1},
      {"scheme", job.type},
      {"scales", job.scales == gguf::BlockScales::kSearched ? "searched" : "plain"},
      {"model", job.model},
      {"output", job.output},
      {"bytes", {{"float", report.bytes_before}, {"quantized", report.bytes_after}}},
      {"tensors", tensors}}
      .dump();
}

}  // namespace paddle::quant
