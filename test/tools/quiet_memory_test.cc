// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/quiet_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace devmgrd {
namespace {

constexpr std::size_t kPages = 64;

/// A file of zeros, mapped privately and read whole.
class MappedFile {
 public:
  MappedFile() {
    std::string name = testing::TempDir() + "quiet-memory-XXXXXX";
    const int file = mkstemp(name.data());
    unlink(name.c_str());
    EXPECT_EQ(ftruncate(file, static_cast<off_t>(size())), 0);
    bytes_ = static_cast<char*>(
        mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0));
    EXPECT_NE(static_cast<void*>(bytes_), MAP_FAILED);
    close(file);
  }
  ~MappedFile() { munmap(bytes_, size()); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  char& At(std::size_t page) { return bytes_[page * page_]; }
  void Seal() { EXPECT_EQ(mprotect(bytes_, size(), PROT_READ), 0); }
  void Touch() {
    volatile char sink = 0;
    for (std::size_t page = 0; page < kPages; ++page) sink = At(page);
    static_cast<void>(sink);
  }

  /// Pages that the process has in its page table.
  std::size_t Resident() {
    const int table = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    std::vector<std::uint64_t> entries(kPages);
    const auto first = reinterpret_cast<std::uintptr_t>(bytes_) / page_;
    const auto bytes = entries.size() * sizeof(std::uint64_t);
    EXPECT_EQ(pread(table, entries.data(), bytes,
                    static_cast<off_t>(first * sizeof(std::uint64_t))),
              static_cast<ssize_t>(bytes));
    close(table);
    return static_cast<std::size_t>(
        std::count_if(entries.begin(), entries.end(),
                      [](std::uint64_t entry) { return entry >> 63 == 1; }));
  }

 private:
  std::size_t size() const { return kPages * page_; }

  const std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  char* bytes_ = nullptr;
};

TEST(QuietMemoryTest, PagesThatAFileHasAreGivenBack) {
  MappedFile file;
  file.Seal();
  file.Touch();
  ASSERT_EQ(file.Resident(), kPages);
  GiveMemoryBack();
  EXPECT_EQ(file.Resident(), 0U);
  EXPECT_EQ(file.At(3), '\0');
}

// As a relocation, or a debugger's breakpoint.
TEST(QuietMemoryTest, AMappingWithAChangeStaysAsItIs) {
  MappedFile file;
  file.At(3) = 'x';
  file.Seal();
  file.Touch();
  GiveMemoryBack();
  EXPECT_EQ(file.Resident(), kPages);
  EXPECT_EQ(file.At(3), 'x');
}

TEST(QuietMemoryTest, WhatMayBeWrittenStays) {
  MappedFile file;
  file.Touch();
  GiveMemoryBack();
  EXPECT_EQ(file.Resident(), kPages);
}

}  // namespace
}  // namespace devmgrd
