#pragma once
// Compilers of graphs as classes; part of plugin.hpp, which explains how plug-ins are written.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "paddle/plugin/calls.hpp"
#include "paddle/plugin/kinds.hpp"

#if PADDLE_PLUGIN_TARGET_MINOR >= 3
namespace paddle::plugin {

/// Thrown by a compiler that leaves a region to the engine.
struct Declined {};

/// An operation of a region; values have numbers.
class Node {
 public:
  explicit Node(const paddle_node& raw) : raw_(raw) {}
  std::string_view operation() const { return raw_.operation; }
  /// -1 where absent.
  std::span<const int32_t> operands() const { return {raw_.operands, raw_.operand_count}; }
  std::span<const int32_t> results() const { return {raw_.results, raw_.result_count}; }
  /// The attributes.
  Request request() const { return {host(), raw_.request}; }
  std::string_view location() const { return raw_.location; }

 private:
  const paddle_node& raw_;
};

/// What is compiled (graph.h); valid while it is.
class Region {
 public:
  explicit Region(const paddle_region& raw) : raw_(raw) {}
  /// Operands have the numbers from 0.
  uint32_t operands() const { return raw_.operand_count; }
  uint32_t values() const { return raw_.value_count; }
  const paddle_view& value(int32_t number) const { return *raw_.values[number]; }
  /// The numbers of the values that the region gives.
  std::span<const int32_t> results() const { return {raw_.results, raw_.result_count}; }
  uint32_t nodes() const { return raw_.node_count; }
  Node node(uint32_t i) const { return Node(*raw_.nodes[i]); }
  /// The text of a module.
  std::string_view text() const { return raw_.text; }

 private:
  const paddle_region& raw_;
};

/// The number of elements of a view.
inline int64_t count_of(const paddle_view& view) {
  int64_t n = 1;
  for (int32_t i = 0; i < view.rank; ++i) n *= view.shape[i];
  return n;
}

/// A compiled region, and what stays the same in its runs.
template <class T>
struct Compiled {
  template <class... Form>
  explicit Compiled(const Region& region, const Form&... form) : compiled(region, form...) {}
  T compiled;
  Run::Layout layout;
};

/// Fills in the instance of the compiled region that `make` gives.
template <class T, class Make>
paddle_status compiled_with(paddle_call* call, const paddle_region& region,
                            paddle_instance* instance, const Make& make) {
  bool declined = false;
  const paddle_status status = guarded(call, [&] {
    const Region own(region);
    Compiled<T>* state = nullptr;
    try {
      state = make(own);
    } catch (const Declined&) {
      declined = true;
      return;
    }
    instance->state = state;
    instance->destroy = [](void* made) { delete static_cast<Compiled<T>*>(made); };
    instance->run = [](const void* made, const paddle_run* run) {
      const auto& s = *static_cast<const Compiled<T>*>(made);
      return guarded(run->call, [&] { s.compiled.run(Run(host(), run, &s.layout)); });
    };
    for (uint32_t i = 0; i < region.operand_count; ++i) {
      const paddle_view& view = *region.values[i];
      state->layout.operands.emplace_back(view.shape, view.shape + view.rank);
      state->layout.operand_dtypes.push_back(view.dtype);
    }
    for (const int32_t number : own.results()) {
      const paddle_view& view = own.value(number);
      state->layout.results.emplace_back(view.shape, view.shape + view.rank);
    }
  });
  return declined ? paddle_status{PADDLE_DECLINED} : status;
}

/// The descriptor of a compiler of the class T, an instance of which is a compiled region:
///   static bool supports(std::string_view operation, const Request& request);
///   explicit T(const Region& region);   throws Declined to leave it to the engine
///   void run(const Run& run) const;     from several threads at once
/// and, if it likes, since 1.4,
///   static double cost(std::string_view operation, const Request& request);
///   std::string serialize() const;      the compiled form
///   T(const Region& region, std::string_view form);   the same from it, or throws Declined
template <class T>
paddle_compiler compiler_of(const char* name, const char* doc, uint32_t flags,
                            uint32_t least_operations) {
  paddle_compiler out{};
  out.struct_size = sizeof out;
  out.flags = flags;
  out.name = name;
  out.doc = doc;
  out.device = "cpu";
  out.least_operations = least_operations;
  out.supports = [](paddle_call* call, const char* operation, const paddle_request* request) {
    bool answer = false;
    const paddle_status status =
        guarded(call, [&] { answer = T::supports(operation, Request(host(), request)); });
    return status != PADDLE_OK || answer ? status : paddle_status{PADDLE_DECLINED};
  };
  out.compile = [](paddle_call* call, const paddle_region* region, paddle_instance* instance) {
    return compiled_with<T>(call, *region, instance,
                            [&](const Region& own) { return new Compiled<T>(own); });
  };
#if PADDLE_PLUGIN_TARGET_MINOR >= 4
  if constexpr (requires(std::string_view name, const Request& r) { T::cost(name, r); })
    out.cost = [](paddle_call* call, const char* operation, const paddle_request* request) {
      double seconds = 0;
      guarded(call, [&] { seconds = T::cost(operation, Request(host(), request)); });
      return seconds;
    };
  if constexpr (requires(const T& t, const Region& r, std::string_view form) {
                  t.serialize();
                  T(r, form);
                }) {
    out.serialize = [](paddle_call* call, const void* state, paddle_write write, void* context) {
      return guarded(call, [&] {
        const std::string form = static_cast<const Compiled<T>*>(state)->compiled.serialize();
        check(write(context, form.data(), form.size()));
      });
    };
    out.deserialize = [](paddle_call* call, const paddle_region* region, const void* bytes,
                         size_t size, paddle_instance* instance) {
      const std::string_view form(static_cast<const char*>(bytes), size);
      return compiled_with<T>(call, *region, instance,
                              [&](const Region& own) { return new Compiled<T>(own, form); });
    };
  }
#endif
  return out;
}

}  // namespace paddle::plugin
#endif
