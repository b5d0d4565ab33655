"""Ages and durations, as kubectl's tables write them."""

from datetime import datetime

from trio_sched.simulator.storage.clock import parse_timestamp


def human_duration(seconds: float) -> str:
    """*seconds* as kubectl writes ages: two units while they are small, one when they are not."""
    whole = int(seconds)
    if whole < 0:
        return "<invalid>" if whole < -1 else "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def since(text: str | None, now: datetime) -> str:
    """How long before *now* the moment was that *text* names."""
    moment = parse_timestamp(text) if text else None
    return human_duration((now - moment).total_seconds()) if moment else "<unknown>"
