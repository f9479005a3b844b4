#pragma once
// The findings of a search within a dimension for each problem, and the tables that collect it. A
// table does not change once it is made, since it is compared as a whole; later findings make
// another.

#include <map>
#include <string>

namespace paddle::tune {

class Findings {
 public:
  using Table = std::map<std::string, std::string>;  ///< a choice by problem

  /// Tables have names as "kernels.txt", "kernels_2.txt", ….
  Findings(std::string stem, std::string extension)
      : stem_(std::move(stem)), extension_(std::move(extension)) {}

  /// Whether the problem was timed with the present number of threads.
  bool knows(const std::string& problem) const { return results_.contains(key(problem)); }
  /// `choice` is faster than the default; "": the default stays.
  void add(const std::string& problem, const std::string& choice);
  bool empty() const { return results_.empty(); }

  /// Makes a table of all choices for the present number of threads if some are new. The name of
  /// the newest table, "" if there is none.
  std::string collect();
  /// Null for a name that no table has.
  const Table* table(const std::string& name) const;

  /// The findings of both searches of a subject as a JSON object, and back (kData for other texts).
  friend std::string state_text(const Findings& kernels, const Findings& schedules);
  friend void read_state(const std::string& text, Findings& kernels, Findings& schedules);

 private:
  static std::string key(const std::string& problem);
  std::string name(size_t index) const;

  std::string stem_, extension_;
  Table results_;  ///< by number of threads and problem
  std::map<std::string, Table> tables_;
  bool has_new_ = false;
};

std::string state_text(const Findings& kernels, const Findings& schedules);
void read_state(const std::string& text, Findings& kernels, Findings& schedules);

}  // namespace paddle::tune
