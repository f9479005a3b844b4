#pragma once
// Includes the source of an example without its entry: its classes are changed by faults, which
// `fault_is` names.

#include <paddle/plugin/plugin.hpp>

#include <cstdlib>
#include <string_view>

static bool fault_is(std::string_view name) {
  const char* const fault = std::getenv("FAULT");
  return fault && name == fault;
}

#pragma push_macro("PADDLE_PLUGIN")
#undef PADDLE_PLUGIN
#define PADDLE_PLUGIN(name, version, variable) \
  [[maybe_unused]] static void define_##name(paddle::plugin::Plugin& variable)
