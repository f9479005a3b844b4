#pragma once
// The kinds of things that plug-ins add to registries by name: transports, tables, readers
// and compilers. Not for use outside the room.

#include "paddle/plugin/plugin.h"
#include "plugin/descriptors.h"
#include "plugin/registration.h"

namespace paddle::plugin {

/// Checks the descriptors and adds them to the parts; kDevice for one that does not fit.
/// kConfig for keys that do not fit.
void read_transports(const Descriptors& descriptors, const paddle_plugin& given,
                     const std::string& file, Parts& parts);
void read_tables(const Descriptors& descriptors, const paddle_plugin& given,
                 const std::string& file, Parts& parts);
void read_readers(const Descriptors& descriptors, const paddle_plugin& given,
                  const std::string& file, Parts& parts);
/// `parts` has the devices.
void read_compilers(const Descriptors& descriptors, const paddle_plugin& given, Parts& parts);
/// Adds them to the registries of the engine.
void register_kinds(Parts& parts);

}  // namespace paddle::plugin
