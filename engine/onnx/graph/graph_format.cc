#include "onnx/graph/graph_format.h"

#include <list>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace paddle::onnx {
namespace {

struct AddedFormat {
  GraphFormat format;
  mutable std::once_flag once = {};
  mutable std::unordered_map<std::string_view, const Operator*> operators = {};  ///< by name

  const Operator* find_operator(const std::string& name) const {
    std::call_once(once, [this] {
      for (const Operator& op : format.operators()) operators.emplace(op.name, &op);
    });
    const auto found = operators.find(name);
    return found == operators.end() ? nullptr : found->second;
  }
};

struct AddedFormats {
  std::mutex mutex;
  std::list<AddedFormat> all;

  const AddedFormat* find(const std::string& domain) {
    const std::lock_guard lock(mutex);
    for (const AddedFormat& each : all)
      if (each.format.domain == domain) return &each;
    return nullptr;
  }
};

AddedFormats& added_formats() {
  static auto* const kFormats = new AddedFormats;
  return *kFormats;
}

/// The added format of a file; nullptr if it is ONNX.
const GraphFormat* format_of(const std::string& path) {
  AddedFormats& formats = added_formats();
  const std::lock_guard lock(formats.mutex);
  for (const AddedFormat& each : formats.all)
    if (each.format.is_file(path)) return &each.format;
  return nullptr;
}

}  // namespace

void add_graph_format(GraphFormat format) {
  AddedFormats& formats = added_formats();
  const std::lock_guard lock(formats.mutex);
  formats.all.emplace_back().format = std::move(format);
}

const GraphFormat* added_format(const std::string& domain) {
  const AddedFormat* found = domain.empty() ? nullptr : added_formats().find(domain);
  return found ? &found->format : nullptr;
}

const Operator* added_operator(const formats::onnx::Node& node) {
  const AddedFormat* format = node.domain.empty() ? nullptr : added_formats().find(node.domain);
  return format ? format->find_operator(node.op_type) : nullptr;
}

bool is_graph_file(const std::string& path) {
  return path.ends_with(".onnx") || format_of(path) != nullptr;
}

formats::onnx::Model read_graph_file(const std::string& path) {
  const GraphFormat* format = format_of(path);
  return format ? format->read(path) : formats::onnx::read_model(path);
}

}  // namespace paddle::onnx
