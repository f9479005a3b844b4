// Any bytes as a stored graph: files one after the other, each after a line with its name and size.
// A first byte 't' makes the rest a list of edges that is built.

#include <charconv>
#include <filesystem>
#include <fstream>

#include "fuzz/fuzz_target.h"
#include "graph/build.h"
#include "graph/sampling.h"

namespace {

using namespace paddle;
namespace fs = std::filesystem;

/// Writes the files to a new folder.
void write_files(std::string_view bytes, const std::string& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    const size_t blank = line.find(' ');
    if (blank == line.npos) return;
    size_t size = 0;
    std::from_chars(line.data() + blank + 1, line.data() + line.size(), size);
    const std::string_view content = bytes.substr(0, size);
    bytes.remove_prefix(content.size());
    const std::string_view name = line.substr(0, blank);
    if (name.empty() || name[0] == '.' || name.find_first_of("/\0\n") != name.npos) continue;
    std::ofstream(folder + "/" + std::string(name), std::ios::binary) << content;
  }
}

void use_graph(const std::string& folder) {
  const graph::GraphPtr graph = graph::open_graph(folder);
  fuzz::expect_documented_end([&] { graph::check_graph(*graph); });
  for (const graph::NodeType& type : graph->nodes)
    for (int64_t i = 0; i < std::min<int64_t>(type.count, 20); ++i)
      fuzz::expect_documented_end([&] { type.find(std::string_view(type.id_of(i))); });
  for (size_t t = 0; t < graph->edges.size(); ++t) {
    const graph::EdgeType& type = graph->edges[t];
    for (int64_t i = 0; i < std::min<int64_t>(type.sources, 20); ++i)
      for (const bool weighted : {false, true})
        for (const bool replace : {false, true})
          fuzz::expect_documented_end([&] {
            std::vector<int64_t> edges;
            graph::choose_edges(type, i, {3, weighted, replace}, {1, 2}, edges);
            for (const int64_t edge : edges) type.neighbor(edge);
          });
    if (type.from == type.to && type.sources > 0)
      fuzz::expect_documented_end([&] {
        graph::walk(*graph, 0, 0, {.path = {t}, .length = 5, .weighted = true, .q = 2}, {});
      });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = fuzz::input_file({data, size}, "x.csv");
  const std::string folder = path + ".graph";
  if (size > 0 && data[0] == 't') {
    fuzz::expect_documented_end([&] {
      graph::GraphDescription d = graph::describe_edge_list(path, "", true, size % 2 == 1);
      d.memory = 1 << 16;
      fs::remove_all(folder);
      graph::build_graph(d, folder);
      use_graph(folder);
    });
  } else {
    write_files({reinterpret_cast<const char*>(data), size}, folder);
    fuzz::expect_documented_end([&] { use_graph(folder); });
  }
  fs::remove_all(folder);
  return 0;
}
