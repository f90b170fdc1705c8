/* Where the blocks of a launch meet (code.h). */
#include "base/code.h"

static void end_round(code_meeting *m) {
    if (m->arrived == 0 || m->arrived + m->ended < m->blocks) return;
    m->arrived = 0;
    m->round++;
}

uint64_t code_meeting_arrive(code_meeting *m) {
    pthread_mutex_lock(&m->lock);
    uint64_t round = m->round;
    m->arrived++;
    end_round(m);
    pthread_mutex_unlock(&m->lock);
    return round;
}

void code_meeting_leave(code_meeting *m) {
    pthread_mutex_lock(&m->lock);
    m->ended++;
    end_round(m);
    pthread_mutex_unlock(&m->lock);
}
