#include "plugin/compiler_adapter.h"

#include <deque>
#include <unordered_map>

#include "base/file_cache.h"
#include "base/parallel.h"
#include "base/sha256.h"
#include "base/timing_conditions.h"
#include "plugin/frame.h"
#include "plugin/host.h"
#include "plugin/kernel_adapter.h"
#include "runtime/execute.h"
#include "tensor/device.h"

namespace paddle::plugin {
namespace {

using compiler::RegionRequest;

/// The layout of a value whose sizes may be unknown: these are -1.
Layout layout_of(const ir::Value* value) {
  Layout out;
  if (!value) {
    out.present = false;
    return out;
  }
  out = layout_of_type(value->type);
  if (value->constant) out.constant = value->constant->raw();
  return out;
}

/// A region with its sizes, and what the struct of C points to.
class RegionDescription {
 public:
  /// Whether all sizes of the region are known, and it has nothing but plain operations.
  explicit RegionDescription(const RegionRequest& request) {
    const ir::Region& region = *request.operation.regions[0];
    for (size_t i = 0; i < region.arguments.size(); ++i) {
      add(region.arguments[i], request.operands[i]);
      ir::Value* const input =
          function_.add_input({ir::PortKind::kValue, str("x", i)}, type_of(layouts_.back()));
      ir::annotate(*input, *region.arguments[i]);
      copies_.push_back(input);
    }
    for (const auto& operation : region.operations)
      if (!add_node(*operation, request.symbols)) return;
    for (size_t i = 0; i < region.results.size(); ++i) {
      const auto at = numbers_.find(region.results[i]);
      if (at == numbers_.end()) return;
      results_.push_back(at->second);
      function_.add_output({ir::PortKind::kValue, str("y", i)},
                           copies_[static_cast<size_t>(at->second)]);
    }
    text_ = ir::print_module(function_, "module");
    values_.emplace(layouts_);
    fill();
  }
  RegionDescription(const RegionDescription&) = delete;
  RegionDescription& operator=(const RegionDescription&) = delete;
  bool is_complete() const { return values_.has_value(); }
  const paddle_region& get() const { return region_; }

 private:
  static TensorType type_of(const Layout& layout) { return {layout.dtype, to_shape(layout.shape)}; }
  void add(const ir::Value* value, Layout layout) {
    numbers_[value] = static_cast<int32_t>(layouts_.size());
    layouts_.push_back(std::move(layout));
  }

  bool add_node(const ir::Operation& o, const SymbolLookup& symbols) {
    if (!o.regions.empty() || !runtime::can_bind(o.attrs, symbols)) return false;
    Node& node = nodes_.emplace_back();
    std::vector<Layout> operands, results;
    std::vector<ir::Value*> copied;
    std::vector<TensorType> types;
    for (const ir::Value* v : o.operands) {
      const auto at = numbers_.find(v);
      if (v && at == numbers_.end()) return false;
      node.operands.push_back(v ? at->second : -1);
      copied.push_back(v ? copies_[static_cast<size_t>(at->second)] : nullptr);
      operands.push_back(v ? layouts_[static_cast<size_t>(at->second)] : layout_of(nullptr));
    }
    for (const ir::Value* v : o.results) {
      const auto shape = runtime::bind_shape(v->type.shape, symbols);
      if (!shape) return false;
      node.results.push_back(static_cast<int32_t>(layouts_.size()));
      results.push_back(Layout::contiguous(v->type.dtype, *shape));
      types.push_back(type_of(results.back()));
      add(v, results.back());
    }
    Attrs attrs = runtime::bind_attrs(o.attrs, symbols);
    ir::Operation* const copy = function_.append(function_.body, *o.op, copied, attrs, types);
    copy->location = o.location;
    for (size_t i = 0; i < o.results.size(); ++i) {
      ir::annotate(*copy->results[i], *o.results[i]);
      copies_.push_back(copy->results[i]);
    }
    node.name = std::string(o.op->name());
    node.location = o.location;
    node.request.emplace(*o.op, std::move(attrs), operands, results);
    return true;
  }

  void fill() {
    for (Node& node : nodes_) {
      paddle_node& out = node.out;
      out.struct_size = sizeof out;
      out.operand_count = static_cast<uint32_t>(node.operands.size());
      out.result_count = static_cast<uint32_t>(node.results.size());
      out.operation = node.name.c_str();
      out.operands = node.operands.data();
      out.results = node.results.data();
      out.request = node.request->get();
      out.location = node.location.c_str();
      node_list_.push_back(&out);
    }
    region_.struct_size = sizeof region_;
    region_.operand_count = static_cast<uint32_t>(function_.inputs.size());
    region_.result_count = static_cast<uint32_t>(results_.size());
    region_.value_count = static_cast<uint32_t>(layouts_.size());
    region_.node_count = static_cast<uint32_t>(nodes_.size());
    region_.thread_count = static_cast<uint32_t>(thread_count());
    region_.values = values_->data();
    region_.results = results_.data();
    region_.nodes = node_list_.data();
    region_.text = text_.c_str();
  }

  struct Node {
    std::string name, location;
    std::vector<int32_t> operands, results;
    std::optional<OperationRequest> request;
    paddle_node out{};
  };
  ir::Function function_{"region"};
  std::vector<ir::Value*> copies_;  ///< by number, in `function_`
  std::unordered_map<const ir::Value*, int32_t> numbers_;
  std::vector<Layout> layouts_;
  std::deque<Node> nodes_;
  std::vector<const paddle_node*> node_list_;
  std::vector<int32_t> results_;
  std::optional<LayoutViews> values_;
  std::string text_;
  paddle_region region_{};
};

std::vector<Layout> layouts_of(const std::vector<ir::Value*>& values) {
  std::vector<Layout> out;
  for (const ir::Value* v : values) out.push_back(layout_of(v));
  return out;
}

/// The request of an operation that is not compiled yet: sizes may be unknown.
OperationRequest request_of(const ir::Operation& operation) {
  return {*operation.op, operation.attrs, layouts_of(operation.operands),
          layouts_of(operation.results)};
}

bool supports(const CompilerContext& context, const ir::Operation& operation) {
  const OperationRequest request = request_of(operation);
  const std::string name(operation.op->name());
  paddle_call call;
  paddle_status status = PADDLE_INTERNAL;
  {
    const Frame frame(context.plugin.c_str(), "supports", context.name.c_str(),
                      operation.location.c_str());
    status = call_plugin(frame, context.plugin.c_str(), context.name.c_str(), [&] {
      return context.functions.supports(&call, name.c_str(), request.get());
    });
  }
  if (status != PADDLE_OK && status != PADDLE_DECLINED)
    throw_status(call, status, context.name + ": supports of " + name);
  return status == PADDLE_OK;
}

double cost(const CompilerContext& context, const ir::Operation& operation) {
  const OperationRequest request = request_of(operation);
  const std::string name(operation.op->name());
  paddle_call call;
  const Frame frame(context.plugin.c_str(), "cost", context.name.c_str(),
                    operation.location.c_str());
  return context.functions.cost(&call, name.c_str(), request.get());
}

/// Compiled forms of regions in files.
FileCache form_cache() {
  return FileCache(cache_folder("regions"), ".region", uint64_t{256} << 20);
}

/// Everything that the compiled form of a region depends on: the file of the plug-in, the region
/// with its sizes and constants, the threads and the processor.
std::string form_key(const CompilerContext& context, const paddle_region& region,
                     std::span<const Layout> operands) {
  Sha256 hash;
  hash.add(region.text);
  for (const Layout& x : operands) {
    hash.add(x.constant ? "constant " : "value ");
    if (x.constant)
      hash.add({static_cast<const char*>(x.constant),
                static_cast<size_t>(storage_bytes(x.dtype, element_count(x.shape)))});
  }
  return str(context.name, " ", context.sha256, " ", PADDLE_PLUGIN_ABI_MINOR, "\n",
             timing_conditions(), "\n", hash.finish_digits());
}

/// Calls `compile` or `deserialize`; false if it declines.
template <class Function>
bool fill_instance(const CompilerContext& context, const char* what, const std::string& location,
                   paddle_instance& instance, Function&& function) {
  instance = {};
  instance.struct_size = sizeof instance;
  paddle_call call;
  paddle_status status = PADDLE_INTERNAL;
  {
    const Frame frame(context.plugin.c_str(), what, context.name.c_str(), location.c_str());
    status = call_plugin(frame, context.plugin.c_str(), context.name.c_str(),
                         [&] { return function(&call); });
  }
  if (status == PADDLE_DECLINED) return false;
  if (status != PADDLE_OK) throw_status(call, status, context.name);
  if (!instance.run)
    fail(ErrorCode::kInternal, context.name, ": '", what, "' of ", context.plugin,
         " gave no 'run'");
  return true;
}

/// The form that the plug-in gives of a compiled region; nothing if it gives none.
std::optional<std::string> form_of(const CompilerContext& context, const std::string& location,
                                   const void* state) {
  constexpr size_t kMaxBytes = size_t{64} << 20;
  std::string form;
  const paddle_write write = [](void* to, const void* bytes, size_t size) -> paddle_status {
    auto& out = *static_cast<std::string*>(to);
    if (size > kMaxBytes - out.size()) return PADDLE_USAGE;
    return guarded(nullptr, [&] { out.append(static_cast<const char*>(bytes), size); });
  };
  paddle_call call;
  paddle_status status = PADDLE_INTERNAL;
  {
    const Frame frame(context.plugin.c_str(), "serialize", context.name.c_str(), location.c_str());
    status = call_plugin(frame, context.plugin.c_str(), context.name.c_str(),
                         [&] { return context.functions.serialize(&call, state, write, &form); });
  }
  if (status == PADDLE_DECLINED) return std::nullopt;
  if (status != PADDLE_OK) throw_status(call, status, context.name + ": serialize");
  return form;
}

std::unique_ptr<Kernel> compile(const CompilerContext& context, const RegionRequest& request) {
  const RegionDescription region(request);
  if (!region.is_complete()) return nullptr;
  const paddle_compiler& c = context.functions;
  const std::string& location = request.operation.location;
  const std::string key =
      c.serialize ? form_key(context, region.get(), request.operands) : std::string();
  paddle_instance instance{};
  const auto kernel = [&] {
    return kernel_of_instance(context.plugin, context.name, instance, request.operands.size(),
                              request.results.size());
  };
  if (c.serialize)
    if (const auto form = form_cache().find(key);
        form && fill_instance(context, "deserialize", location, instance, [&](paddle_call* call) {
          return c.deserialize(call, &region.get(), form->data(), form->size(), &instance);
        }))
      return kernel();
  if (!fill_instance(context, "compile", location, instance,
                     [&](paddle_call* call) { return c.compile(call, &region.get(), &instance); }))
    return nullptr;
  auto out = kernel();
  if (c.serialize)
    if (const auto form = form_of(context, location, instance.state)) form_cache().keep(key, *form);
  return out;
}

}  // namespace

compiler::RegionCompiler region_compiler_of(const CompilerContext& context) {
  const std::string device = context.functions.device ? context.functions.device : "cpu";
  std::function<double(const ir::Operation&)> estimate;
  if (context.functions.cost)
    estimate = [&context](const ir::Operation& o) { return cost(context, o); };
  return {.name = context.name,
          .device_kind = parse_device(device).kind,
          .keeps_bits = (context.functions.flags & PADDLE_COMPILER_KEEPS_BITS) != 0,
          .for_training = (context.functions.flags & PADDLE_COMPILER_TRAINING) != 0,
          .least_operations = context.functions.least_operations,
          .supports = [&context](const ir::Operation& o) { return supports(context, o); },
          .cost = std::move(estimate),
          .compile = [&context](const RegionRequest& r) { return compile(context, r); }};
}

}  // namespace paddle::plugin
