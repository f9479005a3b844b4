#pragma once
// Which shards of a conversion are finished, kept next to its index until the conversion ends, so
// that an interrupted one continues. Finished shards wait under other names: the files of a
// conversion appear when all are there.

#include <cstddef>
#include <string>
#include <vector>

namespace paddle::convert {

/// Where a shard waits for the others.
std::string waiting_name(const std::string& shard);

/// The state of the input: names, sizes and times of its files, a line each. Part of the settings
/// of a conversion.
std::string state_of_input(const std::string& path);

class Journal {
 public:
  /// `settings` is everything that decides the contents of the shards.
  Journal(std::string index, const std::string& settings);

  /// Finished shards of an interrupted conversion with these settings, whose files are there.
  size_t finished(const std::vector<std::string>& shards) const;
  /// Whether a conversion with other settings was interrupted.
  bool is_of_other_settings() const;
  /// kDevice.
  void write(size_t finished) const;
  /// The conversion has ended.
  void remove() const;

 private:
  std::string path_, settings_;
};

}  // namespace paddle::convert
