#pragma once
// Compilers of graphs as classes; part of plugin.hpp, which explains how plug-ins are written.

#include <cstdint>
#include <span>
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

/// The descriptor of a compiler of the class T, an instance of which is a compiled region:
///   static bool supports(std::string_view operation, const Request& request);
///   explicit T(const Region& region);   throws Declined to leave it to the engine
///   void run(const Run& run) const;     from several threads at once
template <class T>
paddle_compiler compiler_of(const char* name, const char* doc, uint32_t flags,
                            uint32_t least_operations) {
  struct State {
    explicit State(const Region& region) : compiled(region) {}
    T compiled;
    Run::Layout layout;
  };
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
    bool declined = false;
    const paddle_status status = guarded(call, [&] {
      const Region own(*region);
      State* state = nullptr;
      try {
        state = new State(own);
      } catch (const Declined&) {
        declined = true;
        return;
      }
      instance->state = state;
      instance->destroy = [](void* made) { delete static_cast<State*>(made); };
      instance->run = [](const void* made, const paddle_run* run) {
        const auto& s = *static_cast<const State*>(made);
        return guarded(run->call, [&] { s.compiled.run(Run(host(), run, &s.layout)); });
      };
      for (uint32_t i = 0; i < region->operand_count; ++i) {
        const paddle_view& view = *region->values[i];
        state->layout.operands.emplace_back(view.shape, view.shape + view.rank);
        state->layout.operand_dtypes.push_back(view.dtype);
      }
      for (const int32_t number : own.results()) {
        const paddle_view& view = own.value(number);
        state->layout.results.emplace_back(view.shape, view.shape + view.rank);
      }
    });
    return declined ? paddle_status{PADDLE_DECLINED} : status;
  };
  return out;
}

}  // namespace paddle::plugin
#endif
