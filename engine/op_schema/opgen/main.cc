// opgen: reads the operation schema (engine/ops/<family>/*.yaml) and writes the typed attribute
// structs, the C++ functions, the declarations of the hand-written rules and the registration
// tables. A rule or kernel that the schema names and that is not defined is a link error.
//
//   opgen engine/ops/*/*.yaml --out DIR
//
// ops/core/parameters.yaml is not a family: it holds synonyms of parameters.
//
// docs/design/new_operator.md explains the keys of an entry and their defaults.

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "write.h"

int main(int argc, char** argv) {
  std::vector<std::string> files;
  std::string out;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--out" && i + 1 < argc)
      out = argv[++i];
    else
      files.push_back(argument);
  }
  if (files.empty() || out.empty()) {
    std::cerr << "usage: opgen SCHEMA.yaml... --out DIR\n";
    return 2;
  }
  try {
    std::vector<opgen::Family> families;
    opgen::Parameters parameters;
    for (const std::string& file : files) {
      if (std::filesystem::path(file).filename() == "parameters.yaml")
        parameters = opgen::read_parameters(file);
      else
        opgen::read_schema(file, families);
    }
    opgen::check(families);
    opgen::write_all(families, parameters, out);
  } catch (const std::exception& e) {
    std::cerr << "opgen: " << e.what() << "\n";
    return 3;
  }
  return 0;
}
