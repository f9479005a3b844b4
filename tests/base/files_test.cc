#include "base/files.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>

namespace paddle {
namespace {

std::string folder() {
  const std::string path = testing::TempDir() + "/paddle_files_" + std::to_string(::getpid());
  ensure_directory(path);
  return path;
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

TEST(MappedFile, ForgottenPagesAreReadAgain) {
  const std::string path = testing::TempDir() + "/forget.bin";
  std::string content(1 << 16, 'a');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>('a' + i / 4096);
  write_file_atomically(path, content);
  const auto file = MappedFile::open(path);
  file->data()[5000] = std::byte{'?'};  // its page is given back, and what was written goes
  file->data()[100] = std::byte{'?'};   // its page is not wholly in the range
  forget_mapped(file->data() + 10, file->size() - 10);
  EXPECT_EQ(file->view()[5000], 'b');
  EXPECT_EQ(file->view()[100], '?');
  std::string own = content;
  forget_mapped(own.data(), own.size());
  EXPECT_EQ(own, content);
}

TEST(Files, WriteThenRead) {
  const std::string path = folder() + "/a.txt";
  write_file_atomically(path, "first");
  write_file_atomically(path, "second");
  EXPECT_EQ(read_file(path), "second");
  EXPECT_EQ(MappedFile::open(path)->view(), "second");
  EXPECT_EQ(list_directory(folder()), std::vector<std::string>{"a.txt"});
  std::filesystem::remove_all(folder());
}

TEST(Files, AnAbandonedWriteLeavesTheOldFile) {
  const std::string path = folder() + "/b.txt";
  write_file_atomically(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(list_directory(folder()).size(), 1u);
  std::filesystem::remove_all(folder());
}

// A limit on the size of files makes writes fail as a full disk does.
TEST(Files, AFailedWriteIsADeviceErrorAndLeavesTheOldFile) {
  const std::string path = folder() + "/full.txt";
  write_file_atomically(path, "old");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  setrlimit(RLIMIT_FSIZE, &small);
  try {
    write_file_atomically(path, std::string(1 << 20, 'x'));
    ADD_FAILURE() << "the write should have failed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDevice);
    EXPECT_NE(error.message().find(path), std::string::npos);
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(list_directory(folder()).size(), 1u);
  std::filesystem::remove_all(folder());
}

TEST(Files, ErrorsNameThePath) {
  for (const char* path : {"/nonexistent/x", "/", "/dev/null"}) {
    try {
      read_file(path);
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kData);
      EXPECT_NE(error.message().find(path), std::string::npos);
    }
  }
  const std::string path = folder() + "/c.txt";
  write_file_atomically(path, "12345");
  EXPECT_THROW(read_file(path, 4), Error);
  EXPECT_THROW(ensure_directory(path), Error);
  std::filesystem::remove_all(folder());
}

TEST(Files, EmptyFileMapsToNothing) {
  const std::string path = folder() + "/empty";
  write_file_atomically(path, "");
  EXPECT_EQ(MappedFile::open(path)->size(), 0u);
  std::filesystem::remove_all(folder());
}

TEST(Files, Crc32) {
  EXPECT_EQ(crc32(as_bytes("123456789")), 0xcbf43926u);  // the check value of the standard
  const std::string long_text(1000, 'q');
  EXPECT_EQ(crc32(as_bytes(long_text)),
            crc32(as_bytes(long_text).subspan(333), crc32(as_bytes(long_text).first(333))));
}

TEST(Files, FreeSpaceOfAFolderToBe) {
  EXPECT_GT(free_space(folder() + "/not/there/yet"), 0u);
  std::filesystem::remove_all(folder());
}

TEST(Files, JoinPath) {
  EXPECT_EQ(join_path("/a/b", "../c"), "/a/c");
  EXPECT_EQ(join_path("/a/b", "/c"), "/c");
}

}  // namespace
}  // namespace paddle
