// Building graphs: against SciPy's matrices of the same files, under every bound of memory; and
// files that are not graphs, whose errors name the place.

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "graph/build.h"
#include "graph/drawn.h"
#include "graph/external_sort.h"
#include "tensor/random.h"

namespace paddle::graph {
namespace {

namespace fs = std::filesystem;
constexpr const char* kGolden = "tests/graph/golden/";

class GraphBuild : public ::testing::Test {
 protected:
  GraphBuild() : folder_(fs::temp_directory_path() / ("graph_test-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~GraphBuild() override { fs::remove_all(folder_); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }
  GraphPtr build(const GraphDescription& description, const std::string& name = "g") const {
    fs::remove_all(file(name));
    report_ = build_graph(description, file(name));
    const GraphPtr graph = open_graph(file(name));
    check_graph(*graph);
    return graph;
  }
  GraphPtr of_edges(const std::string& text, bool undirected = false,
                    const std::string& nodes = "") const {
    return build(describe_edge_list(write("edges.csv", text),
                                    nodes.empty() ? "" : write("nodes.csv", nodes), undirected,
                                    false));
  }
  std::string error_of(const std::function<void()>& body) const {
    try {
      body();
    } catch (const Error& error) {
      const std::string text = error.what();
      const size_t at = text.find(folder_.string());
      return at == text.npos ? text
                             : text.substr(0, at) + text.substr(at + folder_.string().size() + 1);
    }
    return "no error";
  }
  static GraphDescription clicks(uint64_t memory = 1 << 20) {
    GraphDescription d;
    NodeDescription users{.name = "user", .files = {std::string(kGolden) + "users.csv"}};
    users.features = {{.name = "age"},
                      {.name = "country", .category = true},
                      {.name = "f", .columns = {"f0..f1"}, .dtype = DType::kI64}};
    d.nodes = {users, {.name = "item"}};
    EdgeDescription click{.name = "click", .from = "user", .to = "item"};
    click.files = {std::string(kGolden) + "clicks.tsv"};
    click.weighted = true;
    click.reverse = "clicked_by";
    d.edges = {click};
    d.memory = memory;
    return d;
  }
  fs::path folder_;
  mutable BuildReport report_;
};

nlohmann::json golden() {
  return nlohmann::json::parse(read_file(std::string(kGolden) + "golden.json"));
}

std::vector<std::vector<int64_t>> rows_of(const EdgeType& type) {
  std::vector<std::vector<int64_t>> out;
  for (int64_t i = 0; i < type.sources; ++i) {
    const EdgeType::Row row = type.row(i);
    auto& list = out.emplace_back();
    for (int64_t e = row.begin; e < row.end; ++e) list.push_back(type.neighbor(e));
  }
  return out;
}

TEST_F(GraphBuild, MatchesSciPy) {
  const auto expected = golden();
  const GraphPtr graph = build(clicks());
  const NodeType &users = graph->nodes[0], &items = graph->nodes[1];
  ASSERT_EQ(users.count, 30);
  EXPECT_EQ(users.ids, IdKind::kInteger);
  EXPECT_EQ(items.ids, IdKind::kText);
  for (int64_t i = 0; i < users.count; ++i) {
    EXPECT_EQ(users.id_of(i), expected["users"][static_cast<size_t>(i)]);
    EXPECT_EQ(users.find(std::string_view(users.id_of(i))), i);
  }
  EXPECT_FALSE(users.find(uint64_t{5}).has_value());
  for (int64_t i = 0; i < items.count; ++i) {
    EXPECT_EQ(items.id_of(i), expected["items"][static_cast<size_t>(i)]);
    EXPECT_EQ(items.find(std::string_view(items.id_of(i))), i);
  }
  EXPECT_FALSE(items.find(std::string_view("item-")).has_value());
  const auto ages = users.feature("age").values.as<float>();
  const auto countries = users.feature("country").values.as<int64_t>();
  const auto f = users.feature("f").values.as<int64_t>();
  EXPECT_EQ(users.feature("country").classes, (std::vector<std::string>{"de", "fr", "it"}));
  EXPECT_EQ(users.feature("f").shape, Dims{2});
  EXPECT_TRUE(users.feature("age").shape.empty());
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(ages[i], expected["age"][i].get<float>());
    EXPECT_EQ(countries[i], expected["country"][i]);
    EXPECT_EQ(f[2 * i], static_cast<int64_t>(i));
    EXPECT_EQ(f[2 * i + 1], static_cast<int64_t>(i * i));
  }
  const EdgeType& click = graph->edges[graph->edge_type("click")];
  EXPECT_EQ(nlohmann::json(rows_of(click)), expected["clicks"]);
  EXPECT_EQ(nlohmann::json(rows_of(graph->edges[graph->edge_type("clicked_by")])),
            expected["clicked_by"]);
  EXPECT_EQ(graph->edges_from("click", 1), graph->edge_type("clicked_by"));
  for (int64_t i = 0; i < 30; ++i) {
    double sum = 0;
    for (int64_t e = click.row(i).begin; e < click.row(i).end; ++e) sum += click.weight(e);
    EXPECT_NEAR(sum, expected["weight_of_users"][static_cast<size_t>(i)].get<double>(), 1e-4);
  }
}

TEST_F(GraphBuild, MergesParallelEdgesAsSciPyDoes) {
  const auto expected = golden();
  GraphDescription d = clicks();
  d.edges[0].merge = true;
  const GraphPtr graph = build(d);
  const EdgeType& click = graph->edges[0];
  EXPECT_EQ(click.count, static_cast<int64_t>(expected["merged_indices"].size()));
  EXPECT_EQ(report_.duplicate_edges, 120 - click.count);
  for (int64_t i = 0; i <= click.sources; ++i)
    EXPECT_EQ(click.offsets.as<uint64_t>()[static_cast<size_t>(i)],
              expected["merged_indptr"][static_cast<size_t>(i)]);
  for (int64_t e = 0; e < click.count; ++e) {
    EXPECT_EQ(click.neighbor(e), expected["merged_indices"][static_cast<size_t>(e)]);
    EXPECT_NEAR(click.weight(e), expected["merged_weights"][static_cast<size_t>(e)].get<double>(),
                1e-5);
  }
}

TEST_F(GraphBuild, IsTheSameInAnyMemoryAndOrderOfLines) {
  std::string lines, reversed;
  const Random random(3);
  for (uint64_t e = 0; e < 20000; ++e) {
    const std::string line = str(random.below(2 * e, 997), ",", random.below(2 * e + 1, 997), "\n");
    lines += line;
    reversed = line + reversed;
  }
  GraphDescription d = describe_edge_list(write("a.csv", lines), "", true, false);
  const GraphPtr large = build(d, "large");
  d.memory = 1 << 17;
  d.edges[0].files = {write("b.csv", reversed)};
  build(d, "small");
  for (const char* name : {"graph.json", "e0.offsets", "e0.neighbors"})
    EXPECT_EQ(read_file(file("large") + "/" + name), read_file(file("small") + "/" + name)) << name;
  EXPECT_EQ(list_directory(file("small")), list_directory(file("large")));
}

TEST(ExternalSorter, SpillsAndMerges) {
  const std::string folder = fs::temp_directory_path().string();
  ExternalSorter<uint64_t> all(folder, 1 << 16, false), distinct(folder, 1 << 16, true);
  const Random random(5);
  std::vector<uint64_t> expected;
  for (uint64_t i = 0; i < 100000; ++i) expected.push_back(random.below(i, 50000));
  for (const uint64_t value : expected) {
    all.add(value);
    distinct.add(value);
  }
  EXPECT_GT(all.runs(), 5u);
  EXPECT_GT(distinct.runs(), 3u);
  std::vector<uint64_t> found, once;
  all.finish([&](uint64_t value) { found.push_back(value); });
  distinct.finish([&](uint64_t value) { once.push_back(value); });
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(found, expected);
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  EXPECT_EQ(once, expected);
  ExternalSorter<std::string> texts(folder, 1 << 16, true);
  for (int i = 0; i < 5000; ++i) texts.add(str("text ", i % 4000));
  EXPECT_GT(texts.runs(), 0u);
  std::vector<std::string> sorted;
  texts.finish([&](const std::string& text) { sorted.push_back(text); });
  EXPECT_EQ(sorted.size(), 4000u);
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
}

TEST_F(GraphBuild, FormsOfLines) {
  const auto neighbors = [](const GraphPtr& graph) { return rows_of(graph->edges[0]); };
  using Rows = std::vector<std::vector<int64_t>>;
  const Rows chain = {{1}, {2}, {}};
  EXPECT_EQ(neighbors(of_edges("0,1\n1,2\n")), chain);
  EXPECT_EQ(neighbors(of_edges("source,target\r\n# note\r\n\r\n0,1\r\n1,2")), chain);
  EXPECT_EQ(neighbors(of_edges("\"a, b\",c\n")), (Rows{{1}, {}}));
  EXPECT_EQ(neighbors(of_edges("source,target\nx,y\n")), (Rows{{1}, {}}));
  EXPECT_EQ(neighbors(build(describe_edge_list(write("e.txt", "0 1\n1   2\n"), "", false, false))),
            chain);
  EXPECT_EQ(neighbors(build(describe_edge_list(write("e.tsv", "0\t1\n1\t2\n"), "", false, false))),
            chain);
  // An edge to the own node is one edge, in one direction as in both.
  EXPECT_EQ(neighbors(of_edges("0,0\n0,1\n0,1\n", true)), (Rows{{0, 1, 1}, {0, 0}}));
  const GraphPtr none = of_edges("");
  EXPECT_EQ(none->nodes[0].count, 0);
  EXPECT_EQ(none->edges[0].count, 0);
  const GraphPtr largest = of_edges("18446744073709551615,0\n");
  EXPECT_EQ(largest->nodes[0].id_of(1), "18446744073709551615");
}

TEST_F(GraphBuild, InfersFeatures) {
  const GraphPtr graph =
      of_edges("5,7\n", false, "id,count,size,kind\n7,3,0.5,b\n5,1,2,a\n6,2,1e3,b\n");
  const NodeType& nodes = graph->nodes[0];
  EXPECT_EQ(nodes.feature("count").dtype, DType::kI64);
  EXPECT_EQ(nodes.feature("size").dtype, DType::kF32);
  EXPECT_EQ(nodes.feature("size").values.as<float>()[2], 0.5f);
  EXPECT_EQ(nodes.feature("kind").classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(nodes.feature("kind").values.as<int64_t>()[1], 1);
}

TEST_F(GraphBuild, Errors) {
  const auto of = [&](const std::string& edges, const std::string& nodes = "") {
    return error_of([&] { of_edges(edges, false, nodes); });
  };
  EXPECT_EQ(of("0,1\n2\n"), "edges.csv:2: the line has 1 cells, expected at least 2");
  EXPECT_EQ(
      of("0,1\n2,-1\n"),
      "edges.csv:2: the id '-1' is not an integer from 0 to 2^64 - 1; `ids: text` reads ids as "
      "texts");
  EXPECT_EQ(
      of("0,1\n2,18446744073709551616\n"),
      "edges.csv:2: the id '18446744073709551616' is not an integer from 0 to 2^64 - 1; `ids: "
      "text` reads ids as texts");
  EXPECT_EQ(of("0,1\n\"2,1\n"), "edges.csv:2: a quote is not closed");
  EXPECT_EQ(of("0,1\n", "id,x\n0,1\n"),
            "edges.csv:1: no node of 'node' has the id 1; `unknown: add` makes nodes of such ids");
  EXPECT_EQ(of("0,1\n", "id,x\n0,1\n1,2\n0,3\n"), "nodes.csv:4: duplicate node '0'");
  EXPECT_EQ(of("0,1\n", "id,x\n0,1\n1\n"), "nodes.csv:3: the line has 1 cells, expected 2");
  EXPECT_EQ(error_of([&] { build(describe_edge_list(file("none.csv"), "", false, false)); }),
            "none.csv: no such file");
  GraphDescription d = describe_edge_list(write("w.csv", "0,1,2\n1,0,-1\n"), "", false, true);
  EXPECT_EQ(error_of([&] { build(d); }),
            "w.csv:2: the weight is -1, expected 0 or more, and finite");
  d = describe_edge_list(write("w.csv", "0,1,nan\n"), "", false, true);
  EXPECT_EQ(error_of([&] { build(d); }),
            "w.csv:1: the weight is nan, expected 0 or more, and finite");
  GraphDescription numbers = clicks();
  numbers.nodes[0].features = {{.name = "country"}};
  EXPECT_NE(error_of([&] { build(numbers); }).find("users.csv:2: column 'country': '"),
            std::string::npos);
  // Nothing is left of a graph that could not be built.
  EXPECT_FALSE(fs::exists(file("g")));
  for (const std::string& name : list_directory(folder_.string()))
    EXPECT_EQ(name.find(".new-"), std::string::npos) << name;
}

TEST_F(GraphBuild, EveryDamagedByteIsFound) {
  build(clicks());
  int64_t found = 0;
  for (const std::string& name : list_directory(file("g"))) {
    const std::string path = file("g") + "/" + name, good = read_file(path);
    for (size_t at = 0; at < good.size(); at += 11) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 0x15);
      std::ofstream(path, std::ios::binary) << bad;
      const std::string error = error_of([&] { check_graph(*open_graph(file("g"))); });
      EXPECT_EQ(error.find('\n'), std::string::npos);
      if (error != "no error") ++found;
      EXPECT_TRUE(error != "no error" || name == "graph.json") << name << " byte " << at;
    }
    std::ofstream(path, std::ios::binary) << good.substr(0, good.size() - 2);
    EXPECT_NE(error_of([&] { open_graph(file("g")); }), "no error") << name;
    std::ofstream(path, std::ios::binary) << good;
  }
  EXPECT_GT(found, 100);
  EXPECT_EQ(error_of([&] { check_graph(*open_graph(file("g"))); }), "no error");
}

TEST_F(GraphBuild, DrawnGraphIsBuiltAgain) {
  const DrawnGraph options{.nodes = 200, .classes = 3, .degree = 4, .width = 5, .seed = 2};
  write_drawn_graph(options, file("drawn"));
  const GraphPtr drawn = draw_graph(options);
  check_graph(*drawn);
  const GraphPtr built = build(read_graph_config(file("drawn") + "/graph.yaml"));
  EXPECT_EQ(rows_of(built->edges[0]), rows_of(drawn->edges[0]));
  for (const char* name : {"x", "class", "split"}) {
    const Feature &a = built->nodes[0].feature(name), &b = drawn->nodes[0].feature(name);
    EXPECT_EQ(a.classes, b.classes);
    EXPECT_EQ(a.shape, b.shape);
    ASSERT_EQ(a.values.bytes, b.values.bytes);
    EXPECT_EQ(std::memcmp(a.values.data, b.values.data, a.values.bytes), 0) << name;
  }
}

}  // namespace
}  // namespace paddle::graph
