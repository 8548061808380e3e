"""Reconciliation engine: takes names from queues, reads the current state, carries out the decided step, and repeats.

    watch, resync, timers ──name──► queue ──batch──► observe ─► decide ─► carry out ─┐
                                                        ▲                             │
                                                        └─────────────────────────────┘

Level-triggered: reconciliations depend only on the current state, not on the content of events. The engine runs on one asyncio loop;
Admin requests block in separate threads.
"""
