// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/quiet_memory.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace devmgrd {
namespace {

/// Pages of memory that begin at a page, and which of them the process has in
/// its page table.
class Pages {
 public:
  Pages(std::uintptr_t begin, std::size_t count)
      : begin_(begin), count_(count) {}

  std::size_t size() const { return count_; }
  char* At(std::size_t page) const {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): this is how the linker says it
    return reinterpret_cast<char*>(begin_) + page * kPage;
  }
  void Touch() const {
    volatile char sink = 0;
    for (std::size_t page = 0; page < count_; ++page) sink = *At(page);
    static_cast<void>(sink);
  }
  std::size_t Resident() const {
    const int table = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    std::vector<std::uint64_t> entries(count_);
    const auto bytes = entries.size() * sizeof(std::uint64_t);
    EXPECT_EQ(pread(table, entries.data(), bytes,
                    static_cast<off_t>(begin_ / kPage * sizeof(std::uint64_t))),
              static_cast<ssize_t>(bytes));
    close(table);
    return static_cast<std::size_t>(
        std::count_if(entries.begin(), entries.end(),
                      [](std::uint64_t entry) { return entry >> 63 == 1; }));
  }

  static inline const auto kPage =
      static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

 private:
  std::uintptr_t begin_;
  std::size_t count_;
};

/// A library of the system that nothing here calls.
class Library {
 public:
  Library() : handle_(dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr);
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* self) {
          if (std::strstr(object->dlpi_name, "/libresolv.so") != nullptr) {
            static_cast<Library*>(self)->Find(*object);
          }
          return 0;
        },
        this);
    EXPECT_GT(code_.size() + constants_.size(), 4U);
  }
  ~Library() { dlclose(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Pages& code() const { return code_; }
  const Pages& constants() const { return constants_; }

 private:
  void Find(const dl_phdr_info& object) {
    for (int i = 0; i < object.dlpi_phnum; ++i) {
      const auto& segment = object.dlpi_phdr[i];
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
      const std::uintptr_t at = object.dlpi_addr + segment.p_vaddr;
      const std::size_t skipped = at % Pages::kPage;
      const Pages pages(
          at - skipped,
          (skipped + segment.p_memsz + Pages::kPage - 1) / Pages::kPage);
      ((segment.p_flags & PF_X) != 0 ? code_ : constants_) = pages;
    }
  }

  void* const handle_;
  Pages code_{0, 0};
  Pages constants_{0, 0};
};

TEST(QuietMemoryTest, PagesOfLibrariesAreGivenBack) {
  const Library library;
  library.code().Touch();
  library.constants().Touch();
  ASSERT_EQ(library.code().Resident(), library.code().size());
  const char first = *library.code().At(0);
  GiveMemoryBack();
  EXPECT_EQ(library.code().Resident(), 0U);
  EXPECT_EQ(library.constants().Resident(), 0U);
  EXPECT_EQ(*library.code().At(0), first);
}

// As a relocation, or a debugger's breakpoint.
TEST(QuietMemoryTest, AMappingWithAChangeStaysAsItIs) {
  const Library library;
  const Pages& code = library.code();
  code.Touch();
  const char changed = static_cast<char>(*code.At(1) ^ 1);
  ASSERT_EQ(mprotect(code.At(1), Pages::kPage, PROT_READ | PROT_WRITE), 0);
  *code.At(1) = changed;
  ASSERT_EQ(mprotect(code.At(1), Pages::kPage, PROT_READ | PROT_EXEC), 0);
  GiveMemoryBack();
  EXPECT_EQ(code.Resident(), code.size());
  EXPECT_EQ(*code.At(1), changed);
}

// What lies there may be another mapping by the time it is given back.
TEST(QuietMemoryTest, OtherFilesStay) {
  std::string name = testing::TempDir() + "quiet-memory-XXXXXX";
  const int file = mkstemp(name.data());
  unlink(name.c_str());
  const std::size_t bytes = 64 * Pages::kPage;
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(bytes)), 0);
  void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const Pages pages(reinterpret_cast<std::uintptr_t>(mapped), 64);
  pages.Touch();
  GiveMemoryBack();
  EXPECT_EQ(pages.Resident(), pages.size());
  munmap(mapped, bytes);
  close(file);
}

}  // namespace
}  // namespace devmgrd
