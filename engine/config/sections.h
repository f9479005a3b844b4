#pragma once
// The sections and keys of a config that several tools share: each room registers what it reads,
// and whichever tool reads a file checks what the others read as well, so a typo is found at once
// and nothing is accepted unread. sections/sections.h registers those of all rooms.

#include <functional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "config/schema.h"

namespace paddle::config {

/// A key at the top of a config with a map of its own.
struct TopSection {
  std::string name;   ///< "serve"
  std::string owner;  ///< the program that reads it, "paddle-serve"
  std::string doc;
  std::function<Schema()> schema = {};
  /// Changes the map before it is checked, such as names that stand for other maps; empty: nothing.
  std::function<void(Node& section, Diagnostics& diagnostics)> prepare = {};
};

/// All keys that a tool reads at the top of a config of its own, such as those of a training run.
struct TopKeys {
  std::string owner;  ///< the program that reads them, "paddle-train"
  const Schema& (*schema)() = nullptr;
  /// Checks what the schema cannot, once the schema has found nothing; keys that are left out have
  /// their defaults, if they have any. Null: nothing.
  void (*check)(const Node& document, Diagnostics& diagnostics) = nullptr;
};

/// The sections, in the order of registration. Programs register those of all rooms before they
/// read a config (sections/sections.h); more may be added while the program runs, as by a plug-in.
Registry<TopSection>& section_registry();
/// Adds a built-in section; a second call with the same name changes nothing.
void register_section(TopSection section);
/// Adds the keys of a tool, in place of earlier ones of the same owner.
void register_keys(TopKeys keys);

/// Adds the registered sections that `schema` lacks as optional keys.
void add_other_sections(Schema& schema);
/// Checks the registered sections of a document, but those in `own`, which the caller reads. The
/// document stays as it is.
void check_other_sections(const Node& document, const std::vector<std::string>& own,
                          Diagnostics& diagnostics);
/// Checks the sections and keys of a document that other tools read, as they do, except that none
/// need be there. `own` are those that the caller reads. A key that no tool reads is an error once
/// the keys of any tool are registered. The document stays as it is.
void check_other_keys(const Node& document, const std::vector<std::string>& own,
                      Diagnostics& diagnostics);

}  // namespace paddle::config
