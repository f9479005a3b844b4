// The corpus of model files. good/: models with PyTorch's results (make_models.py), run
// as paddle-infer runs them. bad/: wrong models, each with its exit status, place and message.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/files.h"
#include "formats/npz.h"
#include "formats/safetensors.h"

namespace paddle {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path("tests") / "model";

std::string quoted(const std::string& text) { return "'" + text + "'"; }

struct Finished {
  int status = 0;
  std::string error;
};

/// Runs paddle-infer in a folder.
Finished infer(const fs::path& folder, const std::string& arguments) {
  const char* bin = std::getenv("PADDLE_BIN");
  if (!bin) return {-1, "PADDLE_BIN is not set"};
  const std::string program = fs::absolute(fs::path(bin) / "paddle-infer").string();
  const std::string command = "cd " + quoted(folder.string()) + " && timeout 60 " +
                              quoted(program) + " " + arguments + " 2>error.txt >/dev/null";
  const int status = std::system(command.c_str());
  std::ifstream stream(folder / "error.txt");
  std::stringstream text;
  text << stream.rdbuf();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text.str()};
}

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "paddle_models_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream stream(file);
  EXPECT_TRUE(stream.good()) << file;
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// --- good models ---

void expect_close(const Array& got, const Array& wanted, const std::string& what) {
  ASSERT_EQ(text(got.dtype), text(wanted.dtype)) << what;
  ASSERT_EQ(got.shape, wanted.shape) << what;
  const Array a = got.contiguous(), b = wanted.contiguous();
  for (int64_t i = 0; i < a.size(); ++i) {
    const double x = a.number(i), y = b.number(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    ASSERT_NEAR(x, y, 1e-5 + 1e-4 * std::abs(y)) << what << ", element " << i;
  }
}

TEST(Corpus, GoodModelsAgreeWithPyTorch) {
  size_t count = 0;
  for (const std::string& line : lines_of(kFolder / "good" / "cases.txt")) {
    // "NAME FILE[:variant] [argument…]"
    const size_t first = line.find(' '), second = line.find(' ', first + 1);
    const std::string name = line.substr(0, first);
    const std::string model = line.substr(first + 1, second - first - 1);
    const std::string more = second == std::string::npos ? "" : line.substr(second);
    SCOPED_TRACE(name);
    Folder folder;
    const formats::NpzReader golden((kFolder / "good" / (name + ".npz")).string());
    formats::NamedArrays inputs, weights;
    for (const std::string& key : golden.names()) {
      if (key.starts_with("input.")) inputs.push_back({key.substr(6), golden.read(key)});
      if (key.starts_with("weight.")) weights.push_back({key.substr(7), golden.read(key)});
    }
    formats::write_npz((folder.path() / "x.npz").string(), inputs);
    formats::write_safetensors((folder.path() / "w.safetensors").string(), weights);
    const Finished run = infer(
        folder.path(), quoted(fs::absolute(kFolder / "good" / model).string()) + more +
                           " --weights w.safetensors --input x.npz " + "--output y.npz --quiet");
    ASSERT_EQ(run.status, 0) << run.error;
    const formats::NpzReader results((folder.path() / "y.npz").string());
    size_t outputs = 0;
    for (const std::string& key : golden.names()) {
      if (!key.starts_with("output.")) continue;
      ++outputs;
      ASSERT_TRUE(results.contains(key.substr(7))) << key;
      expect_close(results.read(key.substr(7)), golden.read(key), name + ": " + key);
    }
    EXPECT_EQ(results.names().size(), outputs);
    ++count;
  }
  EXPECT_GE(count, 60u);
}

// --- wrong models ---

struct Wrong {
  std::string name, arguments, expected, text;
  std::vector<std::pair<std::string, std::string>> files;
};

/// Cases begin with `#! case NAME`; `#! error STATUS MESSAGE` says what must come (further lines of
/// the message stand after ` | `), `#! arguments …` and `#! file NAME CONTENT` what to add.
std::vector<Wrong> read_wrong(const fs::path& file) {
  std::vector<Wrong> out;
  for (const std::string& line : lines_of(file)) {
    const auto rest = [&](const std::string& word) -> std::optional<std::string> {
      if (!line.starts_with("#! " + word + " ")) return std::nullopt;
      return line.substr(word.size() + 4);
    };
    if (const auto name = rest("case")) {
      out.push_back({*name, "", "", "", {}});
    } else if (const auto expected = rest("error")) {
      out.back().expected = *expected;
    } else if (const auto arguments = rest("arguments")) {
      out.back().arguments = *arguments;
    } else if (const auto extra = rest("file")) {
      const size_t space = extra->find(' ');
      out.back().files.push_back({extra->substr(0, space), extra->substr(space + 1) + "\n"});
    } else {
      out.back().text += line + "\n";
    }
  }
  return out;
}

TEST(Corpus, WrongModelsAreRejectedWithOnePlacedLine) {
  size_t count = 0;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kFolder / "bad"))
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    for (const Wrong& wrong : read_wrong(file)) {
      SCOPED_TRACE(file.stem().string() + "/" + wrong.name);
      Folder folder;
      std::ofstream(folder.path() / "m.yaml") << wrong.text;
      for (const auto& [name, content] : wrong.files)
        std::ofstream(folder.path() / name) << content;
      const bool variant = wrong.arguments.starts_with(":");
      const Finished run = infer(folder.path(), "m.yaml" + std::string(variant ? "" : " ") +
                                                    wrong.arguments + " --benchmark 1 --batch 2");
      std::string said = run.error.starts_with("error: ") ? run.error.substr(7) : run.error;
      while (said.ends_with('\n')) said.pop_back();
      for (size_t at; (at = said.find('\n')) != std::string::npos;) said.replace(at, 1, " | ");
      EXPECT_EQ(std::to_string(run.status) + " " + said, wrong.expected);
      ++count;
    }
  }
  EXPECT_GE(count, 120u);
}

// --- hostile models ---

std::string repeated(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

/// Lines made by counting: `make(1)`, `make(2)`, ….
template <class Make>
std::string counted(int count, const Make& make) {
  std::string out;
  for (int i = 1; i <= count; ++i) out += make(i);
  return out;
}

TEST(Corpus, HostileModelsEndSoonAndSmall) {
  const std::string x = "inputs: {x: \"float32[n]\", k: \"int64[]\"}\n";
  struct Hostile {
    std::string name, text, part;
    int status = 3;
  };
  const auto call_twice = [](const std::string& start, const std::string& last) {
    return "blocks:\n  f0(x): return " + start + "\n" +
           counted(60,
                   [](int i) {
                     const std::string inner = "f" + std::to_string(i - 1);
                     return "  f" + std::to_string(i) + "(x): return " + inner + "(" + inner +
                            "(x))\n";
                   }) +
           "model: return " + last + "\n";
  };
  const std::vector<Hostile> all = {
      {"brackets", x + "model: return " + repeated("(", 100000) + "x" + repeated(")", 100000),
       "m.yaml:2:215: more than 200 levels of nesting"},
      {"nots", x + "model: return " + repeated("not ", 100000) + "x",
       "more than 200 levels of nesting"},
      {"methods", x + "model: return x" + repeated(".abs()", 20000), "more than 200 calls"},
      {"ifs",
       x + "model: |\n" + counted(300, [](int i) { return repeated("  ", i) + "if true:\n"; }) +
           repeated("  ", 301) + "x = x\n",
       "more than 200 levels of nesting"},
      {"yaml",
       x + "params: {a: " + repeated("[", 5000) + repeated("]", 5000) + "}\nmodel: return x",
       "more than 200 levels of nesting"},
      {"aliases",
       x + "params:\n  a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1]\n" +
           counted(12,
                   [](int i) {
                     const std::string alias = "*a" + std::to_string(i - 1) + ", ";
                     return "  a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" +
                            repeated(alias, 7) + "1]\n";
                   }) +
           "model: return x",
       "more than a million values"},
      {"calls of calls", x + call_twice("x", "x * f60(1)"),
       "more than a million operations and loop iterations"},
      {"blocks in blocks",
       x + "blocks:\n  f0(x): return x\n" +
           counted(400,
                   [](int i) {
                     return "  f" + std::to_string(i) + "(x): return f" + std::to_string(i - 1) +
                            "(x)\n";
                   }) +
           "model: return f400(x)",
       "more than 200 levels of nesting"},
      {"params of params",
       x + "params:\n  a0: 1\n" +
           counted(3000,
                   [](int i) {
                     return "  a" + std::to_string(i) + ": a" + std::to_string(i - 1) + " + 1\n";
                   }) +
           "model: return x * a3000",
       "more than 200 levels of nesting"},
      {"a long text", x + "model: |\n  s = \"" + repeated("a", 2000000) + "\"\n  return x",
       "a string of over 1 MiB"},
      {"a long file", x + "# " + repeated("a", 17000000) + "\nmodel: return x", "16 MiB"},
      {"sizes", x + "model: return zeros([3037000500, 3037000500, 8])",
       "m.yaml:2:15: zeros: size overflows 64 bits"},
      {"a huge parameter", x + "model: return x + param(\"w\", [100000, 100000, 1000]).sum()",
       "out of memory", 6},
      {"loops in loops",
       x + "model: |\n" +
           counted(30,
                   [](int i) {
                     const std::string name = "i" + std::to_string(i), in = repeated("  ", i);
                     return in + name + " = 0\n" + in + "while " + name + " < 1:\n" + in + "  " +
                            name + " += 1\n";
                   }) +
           repeated("  ", 31) + "x = x + 1\n  return x",
       "", 0},
      {"conditions in a row",
       x + "model: |\n" +
           counted(150,
                   [](int i) { return "  if k > " + std::to_string(i) + ": return x * 2\n"; }) +
           "  return x",
       "", 0},
  };
  for (const Hostile& hostile : all) {
    SCOPED_TRACE(hostile.name);
    Folder folder;
    std::ofstream(folder.path() / "m.yaml") << hostile.text << "\n";
    const auto begin = std::chrono::steady_clock::now();
    const Finished run = infer(folder.path(), "m.yaml --benchmark 1 --batch 2");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(run.status, hostile.status) << run.error.substr(0, 300);
    EXPECT_NE(run.error.find(hostile.part), std::string::npos) << run.error.substr(0, 300);
    EXPECT_LT(took.count(), 30);
  }
}

}  // namespace
}  // namespace paddle
