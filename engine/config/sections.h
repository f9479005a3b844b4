#pragma once
// The sections of a config that several tools share: each room registers the sections that it
// reads, and whichever tool reads a file checks those of the others as well, so a typo is found at
// once and nothing is accepted unread. sections/sections.h registers those of all rooms.

#include <string>
#include <vector>

#include "config/schema.h"

namespace paddle::config {

/// A key at the top of a config with a map of its own.
struct TopSection {
  std::string name;   ///< "serve"
  std::string owner;  ///< the program that reads it, "paddle-serve"
  std::string doc;
  Schema (*schema)() = nullptr;
  /// Changes the map before it is checked, such as names that stand for other maps; null:
  /// nothing.
  void (*prepare)(Node& section, Diagnostics& diagnostics) = nullptr;
};

/// Adds a section, in place of an earlier one of the same name. Programs register all sections
/// before they read a config.
void register_section(TopSection section);
/// In the order of registration.
const std::vector<TopSection>& registered_sections();

/// Adds the registered sections that `schema` lacks as optional keys.
void add_other_sections(Schema& schema);
/// Checks the registered sections of a document, but those in `own`, which the caller reads. The
/// document stays as it is.
void check_other_sections(const Node& document, const std::vector<std::string>& own,
                          Diagnostics& diagnostics);

}  // namespace paddle::config
