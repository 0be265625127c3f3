// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/quiet_memory.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace devmgrd {
namespace {

constexpr unsigned kQuietSeconds = 10;

struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool is_read_only_file = false;
  bool is_unchanged = false;
};

/// Reads `7f5c4d000000-7f5c4d021000 r-xp 00000000 fe:00 1234   /lib/x.so`, the
/// first line of a mapping in smaps. False: it is another line.
bool ReadFirstLine(const std::string& line, Mapping* mapping) {
  char access[5] = "";
  unsigned long inode = 0;
  const int fields =
      std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*x:%*x %lu",
                  &mapping->begin, &mapping->end, access, &inode);
  if (fields != 4) return false;
  const bool reads = access[0] == 'r' && access[1] == '-';
  mapping->is_read_only_file = reads && inode != 0;
  return true;
}

/// Those of files that may only be read, and that are as the files are.
std::vector<Mapping> UnchangedMappings() {
  std::vector<Mapping> mappings;
  std::ifstream smaps("/proc/self/smaps");
  for (std::string line; std::getline(smaps, line);) {
    Mapping mapping;
    if (ReadFirstLine(line, &mapping)) {
      mappings.push_back(mapping);
      continue;
    }
    unsigned long changed = 0;
    if (!mappings.empty() &&
        std::sscanf(line.c_str(), "Anonymous: %lu kB", &changed) == 1) {
      mappings.back().is_unchanged = changed == 0;
    }
  }
  std::erase_if(mappings, [](const Mapping& mapping) {
    return !mapping.is_read_only_file || !mapping.is_unchanged;
  });
  return mappings;
}

/// Gives back what `object`, the program or a library, has mapped and may only
/// read. As long as this runs no library is unloaded: nothing else can come to
/// lie at the addresses.
int GiveBack(dl_phdr_info* object, std::size_t /*size*/, void* unchanged) {
  const auto& mappings = *static_cast<const std::vector<Mapping>*>(unchanged);
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t at = object->dlpi_addr + segment.p_vaddr;
    const std::uintptr_t begin = at / page * page;
    const std::uintptr_t end = (at + segment.p_memsz + page - 1) / page * page;
    const bool is_whole = std::any_of(
        mappings.begin(), mappings.end(), [&](const Mapping& mapping) {
          return mapping.begin <= begin && end <= mapping.end;
        });
    if (!is_whole) continue;
    // One that cannot be given back stays.
    // NOLINTNEXTLINE(performance-no-int-to-ptr): this is how the linker says it
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void GiveMemoryBack() {
  malloc_trim(0);
  std::vector<Mapping> unchanged = UnchangedMappings();
  dl_iterate_phdr(GiveBack, &unchanged);
}

QuietMemory::QuietMemory() { alarm(kQuietSeconds); }

void QuietMemory::OnPod(const devmgr::PodInfo&, bool /*gone*/) {
  alarm(kQuietSeconds);
}

}  // namespace devmgrd
