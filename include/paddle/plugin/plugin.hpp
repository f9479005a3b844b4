#pragma once
// Plug-ins in C++20: a thin layer over plugin.h, of inline functions only. One source file is a
// plug-in:
//
//   #include <paddle/plugin/plugin.hpp>
//   static void twice(const paddle::plugin::Run& run) {
//     const float* x = run.in<float>(0);
//     float* out = run.out<float>(0);
//     run.parallel(run.count(0), 4096, [=](int64_t begin, int64_t end) {
//       for (int64_t i = begin; i < end; ++i) out[i] = 2 * x[i];
//     });
//   }
//   PADDLE_PLUGIN(demo, "1.0.0", plugin) {
//     plugin.operations("twice: {signature: (x:T) -> out, doc: 2 x., body: 2 * x}");
//     plugin.kernel("demo.twice", "cpu", "float32", twice);
//   }
//
// Exceptions of kernels and passes become errors of the call. Transports, tables and readers are
// classes (kinds.hpp), as are compilers (graph.hpp).

#include <cstring>
#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "paddle/plugin/calls.hpp"
#include "paddle/plugin/graph.hpp"
#include "paddle/plugin/kinds.hpp"
#include "paddle/plugin/plugin.h"

namespace paddle::plugin {

/// What a plug-in offers, as PADDLE_PLUGIN fills it in. It lives to the end of the process.
class Plugin {
 public:
  using Kernel = void (*)(const Run&);
  /// Whether the kernel computes a call; else the body does.
  using Accepts = bool (*)(const Request&);

  /// Entries of the operation schema, as under `operations:` in a .plugin.yaml file.
  void operations(const char* schema) {
    paddle_operation& operation = schemas_.emplace_back();
    operation.struct_size = sizeof operation;
    operation.schema = schema;
  }
#if PADDLE_PLUGIN_TARGET_MINOR >= 5
  /// The same with rules in C (operation.h), which live to the end of the process.
  void operations(const char* schema, std::vector<const paddle_rules*> rules) {
    operations(schema);
    auto& kept = rules_.emplace_back(std::move(rules));
    schemas_.back().rule_count = static_cast<uint32_t>(kept.size());
    schemas_.back().rules = kept.data();
    needs(5);
  }
#endif
  /// `dtypes`: of the first operand, "float32|float64"; null for any. Operands are contiguous:
  /// others are left to the body.
  void kernel(const char* operation, const char* backend, const char* dtypes, Kernel run,
              Accepts accepts = nullptr) {
    entries().push_back({run, accepts});
    kernels_.push_back(
        {sizeof(paddle_kernel), operation, backend, dtypes, prepares()[entries().size() - 1]});
  }
#if PADDLE_PLUGIN_TARGET_MINOR >= 2
  /// A transport of the class T: see transport_of.
  template <class T>
  void transport(const char* name, const char* doc) {
    transports_.push_back(transport_of<T>(name, doc));
    needs(2);
  }
  /// A table of the class T: see table_of.
  template <class T>
  void table(const char* name, const char* doc) {
    tables_.push_back(table_of<T>(name, doc));
    needs(2);
  }
  /// The text of a module that computes the same as `module`; nothing if it stays as it is.
  using Pass = std::optional<std::string> (*)(std::string_view module);
  /// A pass of a stage (PADDLE_STAGE_LAYOUT), at its end or after another one; `flags` are those of
  /// pass.h.
  void pass(const char* name, int32_t stage, uint32_t flags, Pass run,
            const char* after = nullptr) {
    needs(2);
    pass_entries().push_back(run);
    if (pass_entries().size() > kMaxPasses) return;  // fill() fails
    passes_.push_back({sizeof(paddle_pass), stage, name, after, flags, 0,
                       pass_functions()[pass_entries().size() - 1]});
  }
  /// Rewrite rules, as in a file of them.
  void rewrite_rules(const char* text) {
    rewrite_rules_ = text;
    needs(2);
  }
  /// How operations are split over ranks, as `parallel.rules` in a config.
  void sharding_rules(const char* text) {
    sharding_rules_ = text;
    needs(2);
  }
  /// A reader of the class T, with the keys of its datasets as YAML: see reader_of.
  template <class T>
  void reader(const char* name, const char* doc, const char* keys) {
    readers_.push_back(reader_of<T>(name, doc, keys));
    needs(2);
  }
#endif
#if PADDLE_PLUGIN_TARGET_MINOR >= 3
  /// A compiler of the class T for the CPU; `flags` are those of graph.h: see compiler_of.
  template <class T>
  void compiler(const char* name, const char* doc, uint32_t flags = 0,
                uint32_t least_operations = 0) {
    compilers_.push_back(compiler_of<T>(name, doc, flags, least_operations));
    needs(3);
  }
#endif
#if PADDLE_PLUGIN_TARGET_MINOR >= 4
  /// The same with keys in the config, as YAML.
  template <class T>
  void transport(const char* name, const char* doc, const char* keys) {
    transports_.push_back(transport_of<T>(name, doc, keys));
    needs(4);
  }
  template <class T>
  void table(const char* name, const char* doc, const char* keys) {
    tables_.push_back(table_of<T>(name, doc, keys));
    needs(4);
  }
  /// A reader of a stream of the class T: see stream_of.
  template <class T>
  void stream(const char* name, const char* doc, const char* keys) {
    readers_.push_back(stream_of<T>(name, doc, keys));
    needs(4);
  }
  /// The keys of the plug-in in `plugins: [{path: …, options: {…}}]`, as YAML, and what is called
  /// with them once everything is registered. An exception is an error of loading.
  using Start = void (*)(const Options&);
  void options(const char* keys, Start start) {
    keys_ = keys;
    start_entry() = start;
    needs(4);
  }
  /// Called once before the program ends normally. No other function is called later.
  void stop(void (*function)()) {
    stop_ = function;
    needs(4);
  }
#endif
  void summary(const char* text) { summary_ = text; }

  /// The number of kernels and of passes that a plug-in may have in this layer.
  static constexpr size_t kMaxKernels = 64, kMaxPasses = 16;

  paddle_status fill(const paddle_host* table, paddle_plugin* to, const char* name,
                     const char* version) {
    host() = table;
    for (const paddle_operation& each : schemas_) operation_list_.push_back(&each);
    for (const paddle_kernel& each : kernels_) kernel_list_.push_back(&each);
    to->name = name;
    to->version = version;
    to->summary = summary_;
    to->operation_count = static_cast<uint32_t>(operation_list_.size());
    to->operations = operation_list_.data();
    to->kernel_count = static_cast<uint32_t>(kernel_list_.size());
    to->kernels = kernel_list_.data();
    fill_kinds(to);
    to->needs_minor = needs_minor_;
    return entries().size() <= kMaxKernels && passes_fit() ? PADDLE_OK : PADDLE_USAGE;
  }

 private:
  struct Entry {
    Kernel run;
    Accepts accepts;
  };
  struct State {
    Kernel run;
    Run::Layout layout;
  };
  void needs(uint32_t minor) { needs_minor_ = minor > needs_minor_ ? minor : needs_minor_; }
#if PADDLE_PLUGIN_TARGET_MINOR >= 2
  template <class T>
  static void list(const std::vector<T>& all, std::vector<const T*>& pointers, uint32_t& count,
                   const T* const*& to) {
    for (const T& each : all) pointers.push_back(&each);
    count = static_cast<uint32_t>(all.size());
    to = pointers.data();
  }
  void fill_kinds(paddle_plugin* to) {
    list(transports_, transport_list_, to->transport_count, to->transports);
    list(tables_, table_list_, to->table_count, to->tables);
    list(readers_, reader_list_, to->reader_count, to->readers);
    list(passes_, pass_list_, to->pass_count, to->passes);
    to->rewrite_rules = rewrite_rules_;
    to->sharding_rules = sharding_rules_;
#if PADDLE_PLUGIN_TARGET_MINOR >= 3
    list(compilers_, compiler_list_, to->compiler_count, to->compilers);
#endif
#if PADDLE_PLUGIN_TARGET_MINOR >= 4
    if (needs_minor_ < 4) return;  // the struct of an earlier host ends here
    to->keys = keys_;
    if (start_entry()) to->start_with = run_start;
    to->stop = stop_;
#endif
  }
  static bool passes_fit() { return pass_entries().size() <= kMaxPasses; }
#else
  void fill_kinds(paddle_plugin*) {}
  static bool passes_fit() { return true; }
#endif
#if PADDLE_PLUGIN_TARGET_MINOR >= 4
  static Start& start_entry() {
    static Start function = nullptr;
    return function;
  }
  static paddle_status run_start(const paddle_host*, const paddle_options* options,
                                 paddle_call* call) {
    return guarded(call, [&] { start_entry()(Options(options)); });
  }
#endif
  using Prepare = paddle_status (*)(paddle_call*, const paddle_request*, paddle_instance*);

  static std::vector<Entry>& entries() {
    static std::vector<Entry> all;
    return all;
  }
  static bool is_contiguous(const paddle_view& view) {
    int64_t stride = 1;
    for (int32_t i = view.rank; i-- > 0; stride *= view.shape[i])
      if (view.shape[i] > 1 && view.strides[i] != stride) return false;
    return true;
  }
  static paddle_status run_state(const void* state, const paddle_run* run) {
    const auto& s = *static_cast<const State*>(state);
    return guarded(run->call, [&] { s.run(Run(host(), run, &s.layout)); });
  }
  static paddle_status prepare(size_t entry, paddle_call* call, const paddle_request* request,
                               paddle_instance* instance) {
    try {
      const Entry& own = entries()[entry];
      if (own.accepts && !own.accepts(Request(host(), request))) return PADDLE_DECLINED;
      auto* const state = new State{own.run, {}};
      instance->state = state;
      instance->destroy = [](void* made) { delete static_cast<State*>(made); };
      instance->run = run_state;
      for (uint32_t i = 0; i < request->operand_count; ++i) {
        const paddle_view& view = *request->operands[i];
        if (!(view.flags & PADDLE_VIEW_ABSENT) && !is_contiguous(view)) {
          delete state;
          instance->state = nullptr;
          return PADDLE_DECLINED;
        }
        state->layout.operands.emplace_back(view.shape, view.shape + view.rank);
        state->layout.operand_dtypes.push_back(view.dtype);
      }
      for (uint32_t i = 0; i < request->result_count; ++i)
        state->layout.results.emplace_back(request->results[i]->shape,
                                           request->results[i]->shape + request->results[i]->rank);
      return PADDLE_OK;
    } catch (const std::exception& error) {
      return host()->fail(call, PADDLE_INTERNAL, error.what());
    }
  }
#if PADDLE_PLUGIN_TARGET_MINOR >= 2
  static std::vector<Pass>& pass_entries() {
    static std::vector<Pass> all;
    return all;
  }
  static paddle_status run_pass(size_t entry, paddle_call* call, const char* module) {
    try {
      const std::optional<std::string> text = pass_entries()[entry](module);
      if (text) host()->write(call, text->c_str());
      return PADDLE_OK;
    } catch (const Failure& failure) {
      return host()->fail(call, failure.status(), failure.what());
    } catch (const std::exception& error) {
      return host()->fail(call, PADDLE_INTERNAL, error.what());
    }
  }
  using PassFunction = paddle_status (*)(paddle_call*, const char*);
  template <size_t... kIndex>
  static const PassFunction* pass_table(std::index_sequence<kIndex...>) {
    static constexpr PassFunction kAll[] = {
        [](paddle_call* call, const char* module) { return run_pass(kIndex, call, module); }...};
    return kAll;
  }
  static const PassFunction* pass_functions() {
    return pass_table(std::make_index_sequence<kMaxPasses>());
  }
#endif
  /// A function of C for each kernel.
  template <size_t... kIndex>
  static const Prepare* table(std::index_sequence<kIndex...>) {
    static constexpr Prepare kAll[] = {
        [](paddle_call* call, const paddle_request* request, paddle_instance* instance) {
          return prepare(kIndex, call, request, instance);
        }...};
    return kAll;
  }
  static const Prepare* prepares() { return table(std::make_index_sequence<kMaxKernels>()); }

  std::vector<paddle_operation> schemas_;
#if PADDLE_PLUGIN_TARGET_MINOR >= 5
  std::deque<std::vector<const paddle_rules*>> rules_;
#endif
  std::vector<paddle_kernel> kernels_;
  std::vector<const paddle_operation*> operation_list_;
  std::vector<const paddle_kernel*> kernel_list_;
#if PADDLE_PLUGIN_TARGET_MINOR >= 2
  std::vector<paddle_transport> transports_;
  std::vector<const paddle_transport*> transport_list_;
  std::vector<paddle_table> tables_;
  std::vector<const paddle_table*> table_list_;
  std::vector<paddle_reader> readers_;
  std::vector<const paddle_reader*> reader_list_;
  std::vector<paddle_pass> passes_;
  std::vector<const paddle_pass*> pass_list_;
  const char *rewrite_rules_ = nullptr, *sharding_rules_ = nullptr;
#endif
#if PADDLE_PLUGIN_TARGET_MINOR >= 3
  std::vector<paddle_compiler> compilers_;
  std::vector<const paddle_compiler*> compiler_list_;
#endif
#if PADDLE_PLUGIN_TARGET_MINOR >= 4
  const char* keys_ = nullptr;
  void (*stop_)() = nullptr;
#endif
  const char* summary_ = nullptr;
  uint32_t needs_minor_ = 0;
};

}  // namespace paddle::plugin

/// Begins the function that fills in a plug-in: its name, its version in quotes, and a name for the
/// Plugin. Once in a plug-in.
#define PADDLE_PLUGIN(plugin_name, plugin_version, variable)                     \
  static void paddle_define_##plugin_name(paddle::plugin::Plugin& variable);     \
  PADDLE_PLUGIN_NOTE(#plugin_name, plugin_version);                              \
  PADDLE_PLUGIN_EXPORT paddle_status paddle_plugin_main(const paddle_host* host, \
                                                        paddle_plugin* plugin) { \
    static auto* const made = new paddle::plugin::Plugin;                        \
    paddle_define_##plugin_name(*made);                                          \
    return made->fill(host, plugin, #plugin_name, plugin_version);               \
  }                                                                              \
  static void paddle_define_##plugin_name(paddle::plugin::Plugin& variable)
