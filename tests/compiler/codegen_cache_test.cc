// Machine code of groups and schedules on disk, whatever happens to the files there.

#include <sys/resource.h>
#include <sys/wait.h>

#include <cmath>
#include <csignal>
#include <fstream>

#include "base/parallel.h"
#include "compiler/codegen/compiler.h"
#include "compiler/codegen/schedule.h"
#include "support/codegen_fixture.h"

namespace paddle {
namespace {

using codegen::Compiler;
using namespace testing_support;
using CodegenCache = Codegen;

const char* const kProgram =
    "read f32 f32 vector\nread f32 f32 scalar\napply add f32 2 0 1 0\n"
    "apply exp f32 1 2 0\nstore 3 f32\n";

std::string program(int number) {
  return str("read f32 f32 vector\napply scale f32 1 0 3 0x1p+0 0x", number, "p+0 0x1p+0\n",
             "store 1 f32\n");
}

/// The only file in the folder.
fs::path only_file(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  EXPECT_EQ(files.size(), 1u);
  return files.empty() ? fs::path() : files[0];
}

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// Code from the disk only.
std::shared_ptr<const codegen::Code> from_disk(const std::string& folder,
                                               const std::string& text = kProgram) {
  Compiler compiler(folder, "/nonexistent/module.so");
  auto code = compiler.compile(text, cpu::vector_bytes());
  EXPECT_EQ(compiler.counts().from_disk, code ? 1 : 0);
  return code;
}

TEST_F(CodegenCache, IsKeptOnDiskAndLoadedWithoutTheCompiler) {
  Compiler compiler(cache(), module_path());
  ASSERT_TRUE(compiler.compile(kProgram, cpu::vector_bytes()));
  EXPECT_EQ(compiler.counts().compiled, 1);
  ASSERT_TRUE(compiler.compile(kProgram, cpu::vector_bytes()));
  EXPECT_EQ(compiler.counts().compiled, 1);
  const auto code = from_disk(cache());
  ASSERT_TRUE(code);
  float x[5] = {0, 1, 2, 3, 4}, one = 1, y[5];
  void* pointers[] = {x, &one, y};
  const int64_t strides[] = {0, 0, 0};
  code->run(pointers, strides, 1, 5);
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(y[i], std::exp(i + 1.0f), 1e-4f * y[i]);
  EXPECT_FALSE(from_disk(cache(), program(7)));
}

TEST_F(CodegenCache, DamagedFilesAreAsGoodAsNone) {
  Compiler(cache(), module_path()).compile(kProgram, cpu::vector_bytes());
  const fs::path file = only_file(cache());
  const std::string good = content(file);
  ASSERT_TRUE(from_disk(cache()));
  for (size_t size = 0; size < good.size(); size += 13) {
    put(file, good.substr(0, size));
    EXPECT_FALSE(from_disk(cache())) << size;
  }
  put(file, good + "x");
  EXPECT_FALSE(from_disk(cache()));
  for (size_t at = 0; at < good.size(); at += 7) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    put(file, bad);
    EXPECT_FALSE(from_disk(cache())) << at;
  }
  // Another program's code, a folder in its place, what others could have written.
  Compiler(cache() + "2", module_path()).compile(program(1), cpu::vector_bytes());
  put(file, content(only_file(cache() + "2")));
  EXPECT_FALSE(from_disk(cache()));
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_FALSE(from_disk(cache()));
  EXPECT_TRUE(Compiler(cache(), module_path()).compile(kProgram, cpu::vector_bytes()));
  fs::remove(file);
  put(file, good);
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write | fs::perms::others_write);
  EXPECT_FALSE(from_disk(cache()));
  // A damaged file is replaced.
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  put(file, good.substr(0, 100));
  Compiler again(cache(), module_path());
  EXPECT_TRUE(again.compile(kProgram, cpu::vector_bytes()));
  EXPECT_EQ(again.counts().compiled, 1);
  EXPECT_TRUE(from_disk(cache()));
  EXPECT_EQ(only_file(cache()), file);
}

TEST_F(CodegenCache, WorksWhereNothingCanBeKept) {
  fs::create_directories(folder_);
  put(folder_ / "file", "");
  for (const std::string& folder : {std::string(), (folder_ / "file" / "codegen").string(),
                                    std::string("/proc/nonexistent/codegen")})
    EXPECT_TRUE(Compiler(folder, module_path()).compile(kProgram, cpu::vector_bytes())) << folder;
  // A full disk: the file can't be written to its end, and none is left.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_TRUE(Compiler(cache(), module_path()).compile(kProgram, cpu::vector_bytes()));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(fs::is_empty(cache()));
}

TEST_F(CodegenCache, TheOldestFilesGo) {
  codegen::CodeCache kept(cache(), 100'000);
  codegen::CodeImage image;
  image.bytes.assign(1000, 'x');
  for (int i = 0; i < 400; ++i) kept.keep(str("key ", i), image);
  uint64_t total = 0;
  for (const auto& entry : fs::directory_iterator(cache())) total += entry.file_size();
  EXPECT_LT(total, 100'000u + 64 * 1200);
  EXPECT_GT(total, 60'000u);
  EXPECT_TRUE(kept.find("key 399"));
}

TEST_F(CodegenCache, ProcessesMayCompileTheSameAtOnce) {
  constexpr int kPrograms = 12;
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    const pid_t child = fork();
    if (child == 0) {
      Compiler compiler(cache(), module_path());
      bool good = true;
      for (int round = 0; round < 2; ++round)
        for (int i = 0; i < kPrograms; ++i)
          good = good && compiler.compile(program(i), cpu::vector_bytes()) != nullptr;
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  for (int i = 0; i < kPrograms; ++i) EXPECT_TRUE(from_disk(cache(), program(i))) << i;
  EXPECT_EQ(std::distance(fs::directory_iterator(cache()), {}), kPrograms);
}

TEST_F(CodegenCache, ProgramsThatAreNotKnownAreRejected) {
  Compiler compiler("", module_path());
  for (const char* const text :
       {"", "nonsense\n", "read f32\n", "read f32 f32 vector\nstore 1 f32\n",
        "read f32 f32 vector\napply no_such_loop f32 1 0 0\nstore 1 f32\n",
        "read f32 f32 vector\napply add f32 1 0 0\nstore 1 f32\n",
        "read f32 f99 vector\nstore 0 f32\n", "read f32 f32 vector\nfold median 0 lanes\n",
        "read f32 f32 vector\nfold sum 0 sideways\n", "read f32 f32 vector\nfold sum 1 lanes\n",
        "read i32 i32 vector\nfold sum 0 lanes\n"})
    EXPECT_FALSE(compiler.compile(text, cpu::vector_bytes())) << text;
  EXPECT_FALSE(compiler.compile(kProgram, 16));
  EXPECT_TRUE(compiler.compile(kProgram, cpu::vector_bytes()));
}

TEST_F(CodegenCache, SchedulesAreKeptForThisProcessor) {
  const std::string key(16, 'a'), other(16, 'b');
  codegen::ScheduleTable table(cache());
  EXPECT_FALSE(table.find(key));
  table.keep({{key, {4, 512, 0}}});
  EXPECT_EQ(table.find(key), (codegen::Schedule{4, 512, 0}));
  EXPECT_EQ(codegen::ScheduleTable(cache()).find(key), (codegen::Schedule{4, 512, 0}));
  // Another process adds to the file; the number of threads has a table of its own.
  codegen::ScheduleTable(cache()).keep({{other, {2, 0, 0}}});
  table.keep({});
  EXPECT_EQ(codegen::ScheduleTable(cache()).find(key), (codegen::Schedule{4, 512, 0}));
  EXPECT_EQ(codegen::ScheduleTable(cache()).find(other), (codegen::Schedule{2, 0, 0}));
  const fs::path file = table.path();
  const int threads = thread_count();
  set_thread_count(threads + 1);
  EXPECT_FALSE(table.find(key));
  EXPECT_NE(table.path(), file);
  set_thread_count(threads);
  // Lines that are damaged are ignored, and so is a table of another processor.
  const std::string good = content(file);
  for (size_t size = 0; size < good.size(); size += 3) {
    put(file, good.substr(0, size));
    const auto found = codegen::ScheduleTable(cache()).find(key);
    EXPECT_TRUE(!found || *found == (codegen::Schedule{4, 512, 0})) << size;
  }
  std::string foreign = good;
  foreign.insert(foreign.find('\n') + 1, "Another processor, ");
  put(file, foreign);
  EXPECT_FALSE(codegen::ScheduleTable(cache()).find(key));
  put(file, good);
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write | fs::perms::others_write);
  EXPECT_FALSE(codegen::ScheduleTable(cache()).find(key));
  // Without a folder schedules hold to the end of the process.
  codegen::ScheduleTable none("");
  none.keep({{key, {8, 0, 0}}});
  EXPECT_EQ(none.find(key), (codegen::Schedule{8, 0, 0}));
  EXPECT_EQ(none.path(), "");
}

}  // namespace
}  // namespace paddle
