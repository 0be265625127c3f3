// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/quiet_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
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

std::vector<Mapping> ReadMappings() {
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
  return mappings;
}

}  // namespace

void GiveMemoryBack() {
  malloc_trim(0);
  for (const Mapping& mapping : ReadMappings()) {
    if (!mapping.is_read_only_file || !mapping.is_unchanged) continue;
    // One that cannot be given back stays.
    // NOLINTNEXTLINE(performance-no-int-to-ptr): this is how the kernel says it
    madvise(reinterpret_cast<void*>(mapping.begin), mapping.end - mapping.begin,
            MADV_DONTNEED);
  }
}

QuietMemory::QuietMemory() { alarm(kQuietSeconds); }

void QuietMemory::OnPod(const devmgr::PodInfo&, bool /*gone*/) {
  alarm(kQuietSeconds);
}

}  // namespace devmgrd
