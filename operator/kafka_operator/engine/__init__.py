"""The engine: names come in, the present state is read, a decision is asked for one step, the step is carried out, and again.

    watch, resync, timers ──name──► queue ──batch──► observe ─► decide ─► carry out ─┐
                                                        ▲                             │
                                                        └─────────────────────────────┘

Level-triggered: nothing acts on what an event said, only on what is there now. All of it lives on one asyncio loop; the Admin calls
block in threads of their own.
"""
