// SPDX-License-Identifier: Apache-2.0
//
// What a daemon that mostly waits keeps in memory.
#pragma once

#include <devmgr/device_manager.h>

namespace devmgrd {

/// Gives back what is only there because something needed it once:
///   - free parts of the heap;
///   - pages of the program and of its libraries, above all code that ran at
///     the start. They stay in the system's cache, and are mapped again, 16 at
///     a time, where they are used. A mapping with a page that was changed, by
///     a relocation or a debugger, is left as it is, and so are other files.
/// May be called from any thread.
void GiveMemoryBack();

/// Asks main for GiveMemoryBack, by SIGALRM, once no pod has changed for ten
/// seconds: what a busy time needed would stay resident. A daemon that reads
/// from an API server does so in a rhythm of its own: there it is asked for
/// again every half a minute from then on. Others sleep until something comes.
class QuietMemory final : public devmgr::DeviceManagerObserver {
 public:
  /// For the alarm that main sets when it has given memory back.
  static constexpr unsigned kAgainSeconds = 30;

  /// Also at the start, which needs much.
  QuietMemory();
  void OnPod(const devmgr::PodInfo&, bool gone) override;
};

}  // namespace devmgrd
