/* SPDX-License-Identifier: Apache-2.0 */
/* The same programs for drivers that take jumbo frames only beside a program that bears frames in parts. Then small
 * frames may come in parts, too, even with nothing in the first one; a program can put them together since Linux 6.18. All
 * that use one device map must bear parts. Not in generic mode: there Linux 6.18 loses what such a program makes longer. */
#define QW_FRAMES_IN_PARTS
#include "plane.bpf.c"
