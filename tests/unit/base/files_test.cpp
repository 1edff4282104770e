// Sysroot, input and atomic files: everything that reads and writes files.
#include <atomic>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "src/base/atomic_file.h"
#include "src/base/error.h"
#include "src/base/file_descriptor.h"
#include "src/base/input.h"
#include "src/base/json_values.h"
#include "src/base/sysroot.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl {

namespace fs = std::filesystem;

namespace {
template <class Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ExitCode::ok, "", "", "", "");
}
} // namespace

TEST(Sysroot, AbsoluteLinksStayInsideTheRoot) {
  const TemporaryFolder folder;
  folder.write("etc/hostname", "inside\n");
  fs::create_symlink("/etc/hostname", folder.path() + "/link");
  fs::create_symlink("../../../../../../etc/hostname", folder.path() + "/etc/climbing");
  const Sysroot root(folder.path());
  EXPECT_EQ(root.read_line("/link"), "inside");
  EXPECT_EQ(root.read_line("/etc/climbing"), "inside");
  EXPECT_EQ(root.realpath("/link"), "/etc/hostname");
}

TEST(Sysroot, LinksInACircleAreAbsence) {
  const TemporaryFolder folder;
  fs::create_symlink("b", folder.path() + "/a");
  fs::create_symlink("a", folder.path() + "/b");
  const Sysroot root(folder.path());
  EXPECT_EQ(root.read("/a"), std::nullopt);
  EXPECT_EQ(root.realpath("/a/x"), std::nullopt);
  EXPECT_FALSE(root.exists("/a"));
}

TEST(Sysroot, AFifoDoesNotHangTheReader) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder.path() + "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(Sysroot(folder.path()).read("/fifo"), std::nullopt);
}

TEST(Sysroot, ReadsAreBounded) {
  const TemporaryFolder folder;
  folder.write("big", std::string(10000, 'x'));
  EXPECT_EQ(Sysroot(folder.path()).read("/big", 100)->size(), 100U);
}

TEST(Sysroot, ListsInNaturalOrder) {
  const TemporaryFolder folder;
  for (const char* name : {"mlx5_10", "mlx5_2", "mlx5_1"})
    folder.write(std::string("d/") + name, "");
  EXPECT_EQ(Sysroot(folder.path()).list("/d"),
            (std::vector<std::string>{"mlx5_1", "mlx5_2", "mlx5_10"}));
}

TEST(Sysroot, AFileIsNoRoot) {
  const TemporaryFolder folder;
  const std::string file = folder.write("f", "");
  EXPECT_EQ(error_of([&] { Sysroot root(file); }).code(), ExitCode::usage);
  EXPECT_EQ(error_of([&] { Sysroot root(folder.path() + "/none"); }).code(), ExitCode::usage);
}

TEST(Input, RefusesFoldersMissingFilesAndLargeOnes) {
  const TemporaryFolder folder;
  const std::string file = folder.write("f", std::string(2000, 'x'));
  EXPECT_EQ(read_input(file, 2000).size(), 2000U);
  const Error too_large = error_of([&] { read_input(file, 1999); });
  EXPECT_NE(too_large.message().find("larger than the limit"), std::string::npos);
  EXPECT_EQ(too_large.fix(), "pass a smaller file");
  EXPECT_NE(error_of([&] { read_input(folder.path()); }).message().find("directory"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { read_input(folder.path() + "/none"); }).code(), ExitCode::usage);
}

TEST(Input, AnEndlessStreamIsRefusedAtTheLimit) {
  EXPECT_NE(error_of([] { read_input("/dev/zero", 1 << 20); }).message().find("limit"),
            std::string::npos);
}

TEST(Json, ErrorsNameLineAndColumn) {
  EXPECT_EQ(error_of([] { parse_json("{\n  \"a\": ]\n}", "r.json"); }).message(),
            "r.json: line 2, column 8: invalid JSON");
  EXPECT_NE(error_of([] { parse_json(" \n", "r.json"); }).message().find("the file is empty"),
            std::string::npos);
  EXPECT_EQ(error_of([] { parse_json("[\"\xff\"]", "r.json"); }).code(), ExitCode::usage);
}

TEST(Json, ANulByteIsNotTheEnd) {
  // The parser stops at this byte; what follows is still an error.
  for (const std::string& rest :
       {std::string(), std::string("garbage{{{"), std::string(4096, '\0')}) {
    const std::string text = "{\n  \"a\": 1}" + std::string(1, '\0') + rest;
    EXPECT_EQ(error_of([&] { parse_json(text, "r.json"); }).message(),
              "r.json: line 2, column 10: invalid JSON: NUL byte");
    const auto items = [&] {
      parse_json_items(
          text, "r.json", "a", [] {}, [](nlohmann::json&&) {});
    };
    EXPECT_EQ(error_of(items).code(), ExitCode::usage);
    EXPECT_TRUE(try_from_json_line(text).is_discarded());
    EXPECT_THROW(from_json_line(text), nlohmann::json::parse_error);
  }
  EXPECT_EQ(error_of([] { parse_json(std::string(1, '\0'), "r.json"); }).code(), ExitCode::usage);
  EXPECT_EQ(try_from_json_line("[1]"), nlohmann::json({1}));
  EXPECT_EQ(parse_json("[\"a\\u0000b\"]", "r.json")[0].get<std::string>().size(), 3u);
}

TEST(Json, DeepNestingIsRefusedBeforeItIsParsed) {
  EXPECT_NE(error_of([] { parse_json(std::string(10'000'000, '['), "r.json"); })
                .message()
                .find("nested more than"),
            std::string::npos);
  EXPECT_EQ(parse_json("[\"[[[[\\\"[\"]", "r.json").size(), 1U) << "brackets in strings count not";
}

TEST(AtomicFile, RefusesAnExistingFileWithoutForce) {
  const TemporaryFolder folder;
  const std::string file = folder.write("f", "old");
  EXPECT_EQ(error_of([&] { write_file_atomically(file, "new", false); }).code(), ExitCode::usage);
  EXPECT_EQ(folder.read("f"), "old");
  write_file_atomically(file, "new", true);
  EXPECT_EQ(folder.read("f"), "new");
}

TEST(AtomicFile, LeavesNothingBehindWhenItFails) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { write_file_atomically(folder.path() + "/no/f", "x", false); }).code(),
            ExitCode::unavailable);
  EXPECT_EQ(error_of([] { write_file_atomically("/dev/full", "x", true); }).code(),
            ExitCode::unavailable);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(AtomicFile, OfManyWritersOneWinsAndItsFileIsWhole) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/f";
  std::atomic<int> winners{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      try {
        write_file_atomically(file, std::string(100000, static_cast<char>('a' + i)), false);
        ++winners;
      } catch (const Error&) { // lost the race
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(winners, 1);
  const std::string content = folder.read("f");
  EXPECT_EQ(content, std::string(100000, content[0]));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(AtomicFile, WhatTakesThePlaceOfADeviceIsNotWritten) {
  // One of two links leads to a device and one to a file, and they are swapped all the time: a
  // check of the path and opening it may see different targets.
  const TemporaryFolder folder;
  folder.write("victim", "precious");
  const std::string here = folder.path() + "/r.json", there = folder.path() + "/other";
  fs::create_symlink("/dev/null", here);
  fs::create_symlink(folder.path() + "/victim", there);
  std::atomic<bool> stop{false};
  std::thread swapping([&] {
    while (!stop)
      ::renameat2(AT_FDCWD, here.c_str(), AT_FDCWD, there.c_str(), RENAME_EXCHANGE);
  });
  for (int i = 0; i < 3000 && folder.read("victim") == "precious"; ++i) {
    try {
      write_file_atomically(here, "overwritten", false);
    } catch (const Error&) { // the path is a file now, or has become one
    }
  }
  stop = true;
  swapping.join();
  EXPECT_EQ(folder.read("victim"), "precious");
}

TEST(AtomicFile, TheUmaskOfOtherThreadsIsLeftAlone) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(027);
  std::atomic<bool> stop{false};
  std::thread writing([&] {
    for (int i = 0; !stop; ++i)
      write_file_atomically(folder.path() + "/report", std::to_string(i), true);
  });
  mode_t widest = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string path = folder.path() + "/own";
    const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    struct stat status {};
    ASSERT_EQ(::fstat(file.get(), &status), 0);
    widest = widest | (status.st_mode & 0777);
    ::unlink(path.c_str());
  }
  stop = true;
  writing.join();
  struct stat status {};
  EXPECT_EQ(::stat((folder.path() + "/report").c_str(), &status), 0);
  ::umask(before);
  EXPECT_EQ(widest, mode_t{0640});
  EXPECT_EQ(status.st_mode & 0777, mode_t{0640}) << "the report itself follows it";
}

TEST(Input, APipeIsReadToItsWritersEnd) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&path] {
    const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC)); // waits for the reader
    for (int i = 0; i < 100; ++i)
      EXPECT_EQ(::write(file.get(), "0123456789", 10), 10);
  });
  EXPECT_EQ(read_input(path).size(), 1000u);
  writer.join();
}

TEST(Input, OnlyAnInputThatDoesNotComeEndsTheProcess) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EXIT(
      {
        const InputLimit limit(0.1);
        read_input(path);
      },
      testing::ExitedWithCode(124), "fifo.*timed out after 0.1 s");
  folder.write("there", "text");
  {
    const InputLimit limit(100);
    const InputLimit none(0);
    EXPECT_EQ(read_input(folder.path() + "/there"), "text");
  }
  EXPECT_TRUE(input_was_read());
}

} // namespace shmemctl
