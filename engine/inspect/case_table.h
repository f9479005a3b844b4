#pragma once
// A table of cases for operations: JSON lines next to an .npz of the same base name. Each case is
// one call with its expected outputs and gradients, or one that must be rejected. docs: "paddle op
// check".

#include <memory>
#include <string>
#include <vector>

#include "formats/npz.h"
#include "inspect/both_modes.h"
#include "inspect/op_call.h"

namespace paddle::inspect {

struct Case {
  std::string name;
  std::string op;
  std::string json;  ///< the whole line
};

struct CaseTable {
  std::vector<Case> cases;
  std::shared_ptr<const formats::NpzReader> arrays;
};

/// Reads FILE.jsonl, and FILE.npz if a case needs it. Lines that are not cases are kData, with the
/// place.
CaseTable read_case_table(const std::string& path);

struct CaseOptions {
  std::vector<Mode> modes = {Mode::kEager, Mode::kCompiled};
  bool strided = false;  ///< inputs are transposed in memory
  Device device = {};
};

/// The call that a case states; nullopt for one that must be rejected.
std::optional<NamedCall> read_case_call(const Case& c, const formats::NpzReader* arrays);

/// Runs a case in each mode; "" if all agree, else what failed.
std::string run_case(const Case& c, const formats::NpzReader* arrays, const CaseOptions& options);

}  // namespace paddle::inspect
